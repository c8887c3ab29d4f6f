import jax.numpy as jnp
import numpy as np
import pytest

from equistein.diffusion import BlindDiffusion
from equistein.energies import AbstractEnergy
from equistein.groups import Trivial
from equistein.training import Box, Clamp

SIDE, NOISE = 20, 0.05
START = Box(jnp.ones((2, SIDE, SIDE)), Trivial())


class NormalSeenBlindly(AbstractEnergy):
    r"""The energy whose gradient denoises a normal law at every level.

    With q the mean square of x, which tells the noise, $x - v x / q$ is the noise in
    it, for a law of the variance v.
    """

    variance: float = 1.0

    def __call__(self, point):
        size = point.size
        logarithm = self.variance * size * jnp.log(jnp.mean(point**2)) / 2
        return (jnp.sum(point**2) / 2 - logarithm) / NOISE**2

    def group(self, shape):
        return Trivial()


def generator(**options):
    numbers = {"noise": NOISE, "noise_max": 4.0, "class_noise": 2.0, "num_steps": 200}
    return BlindDiffusion(START, START, **(numbers | options), num_at_once=40)


@pytest.mark.parametrize(("variance", "is_right"), [(1.0, True), (1.2, False)])
def test_noise_becomes_a_normal_law_of_the_right_width(variance, is_right, key):
    # The energy of a broken twin is that of a wider law.
    points = generator().sample(key, NormalSeenBlindly(variance), 40)
    error = np.sqrt(2 / points.size)
    steps = np.log(4 / NOISE) / 200  # the order of what finite steps do
    assert (abs(float(jnp.mean(points**2)) - 1) < 4 * error + steps) == is_right


def test_held_pixels_keep_their_values_and_others_are_drawn(key):
    mask = jnp.arange(SIDE) < 5
    clamp = Clamp(jnp.full((SIDE, SIDE), 0.5), mask)
    points = generator(num_steps=20).sample(key, NormalSeenBlindly(), 3, clamp)
    assert np.all(points[:, mask] == 0.5)
    assert 0.5 < np.std(points[:, ~mask]) < 2


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"noise": 5.0}, "`noise` < `noise_max`"),
        ({"class_noise": 0.01}, "`class_noise`"),
        ({"noise": 0.0}, "noise"),
        ({"num_steps": 0}, "num_steps"),
    ],
)
def test_numbers_out_of_range_are_refused(options, words):
    with pytest.raises(ValueError, match=words):
        generator(**options)


def test_points_that_are_not_finite_and_unknown_classes_are_refused(key):
    with pytest.raises(ValueError, match="has no classes"):
        generator().sample(key, NormalSeenBlindly(), 2, 1)
