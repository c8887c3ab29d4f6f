import jax.numpy as jnp
import numpy as np
import pytest
from molecules_by_hand import known, normal_energy

from equistein.diffusion import DiffusionSteps, HeunSteps, ReverseDiffusion, StepSizes

NONE = jnp.zeros(())
CLIP = jnp.array(1e3)


def drawn(key, energy, steps, num=8_000):
    start = energy.start(key, num, (3, 3))
    return steps.run(key, energy, start)


@pytest.mark.parametrize(
    ("steps", "is_right"),
    [
        (HeunSteps(20, CLIP), True),
        (DiffusionSteps(StepSizes(NONE, NONE, CLIP), 40), False),  # of first order
    ],
)
def test_a_narrow_law_comes_out_as_wide_as_its_noise(steps, is_right, key):
    """Of one point at the origin; with as many evaluations the first order fails."""
    energy = known(normal_energy(), factor=1.0)
    points = drawn(key, energy, steps)
    variance = float(jnp.sum(points**2)) / (6 * len(points))  # of 9, less the center
    error = abs(variance / float(energy.sigma_min) ** 2 - 1)
    assert (error < 0.032) == is_right
    assert np.allclose(jnp.mean(points, axis=1), 0, atol=1e-5)


def test_a_wide_law_comes_out_as_wide_as_it_is(key):
    energy = known(normal_energy(), factor=0.0)
    variance = float(jnp.mean(drawn(key, energy, HeunSteps(20, CLIP)) ** 2)) * 9 / 6
    wanted = float(energy.scale**2 + energy.sigma_min**2)
    assert variance == pytest.approx(wanted, rel=0.032)


def test_scores_are_clipped_and_there_is_nothing_to_scale(key):
    steps = HeunSteps(4, jnp.array(1e-3))
    assert steps.scale_steps(jnp.array(0.5)) is steps
    energy = known(normal_energy(), factor=1.0)
    far = drawn(key, energy, steps, 100)
    assert jnp.std(far) > 2 * jnp.std(drawn(key, energy, HeunSteps(4, CLIP), 100))


def test_a_generator_takes_them(key):
    energy = known(normal_energy(), factor=1.0)
    points = ReverseDiffusion(HeunSteps(4, CLIP), (3, 3)).sample(key, energy, 5)
    assert points.shape == (5, 3, 3)
