import jax
import jax.numpy as jnp
import numpy as np
import pytest
from molecules_by_hand import normal_energy

from equistein.diffusion import DiffusionSteps, ReverseDiffusion, StepSizes
from equistein.training import Clamp


@pytest.mark.slow
@pytest.mark.parametrize("right", [True, False])
def test_a_free_atom_is_spread_about_those_held(right, key, monkeypatch):
    if not right:  # a twin whose held atoms are not put into the frame of the cloud
        still = lambda self, point, values, project: jnp.zeros_like(point)
        monkeypatch.setattr(Clamp, "_displacement", still)
    jax.clear_caches()
    energy = normal_energy(0.05)
    sizes = StepSizes(*map(jnp.asarray, (energy.sigma_min**2, 0.0, 1e3)))
    generator = ReverseDiffusion(DiffusionSteps(sizes, 150), (3, 3), 600)
    values = jnp.array([[1.0, 0, 0], [3.0, 0, 0], [9.0, 9, 9]])
    points = generator.sample(key, energy, 600, Clamp(values, [True, True, False]))
    assert (points[:, :2] == values[None, :2]).all()
    free = np.asarray(points[:, 2]) - np.array([2.0, 0, 0])
    scale, num = float(energy.scale), free.size
    variance = 1.5 * scale**2  # of one atom less the mean of two
    close = abs(np.mean(free**2) - variance) < 4 * variance * np.sqrt(2 / num)
    assert close == right
    with pytest.raises(ValueError, match="outside the points"):
        generator.sample(key, energy, 2, Clamp(values[:2], [True, False]))
