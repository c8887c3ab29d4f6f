import jax.numpy as jnp
import numpy as np
import pytest

from equistein.targets import Shells


@pytest.mark.slow
@pytest.mark.parametrize("dim", [2, 3])
def test_the_density_of_the_radius_is_that_of_samples(key, dim):
    target = Shells((1.0, 3.0), (0.2, 0.4), dim)
    radii, density = (np.asarray(values) for values in target.radial_density(1_001))
    assert np.isclose(np.trapezoid(density, radii), 1, atol=1e-4)
    inner = np.trapezoid(np.where(radii < 2, density, 0), radii)
    assert np.isclose(inner, target.weights[0], atol=0.01)
    drawn = np.linalg.norm(target.sample(key, 20_000), axis=1)
    below = np.array(
        [np.trapezoid(density[radii <= r], radii[radii <= r]) for r in (1, 3)]
    )
    found = np.array([(drawn <= r).mean() for r in (1, 3)])
    # Four standard errors of a proportion.
    assert jnp.all(np.abs(below - found) < 4 * 0.5 / 20_000**0.5)
