import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from by_hand import batch_of, bowl

from equistein.energies import KnownEnergy
from equistein.groups import PointCloud
from equistein.training import DenoisingScoreMatching

WIDTH, NOISE = 1.3, 0.5
BEST = 1 / (WIDTH**2 + NOISE**2)
NUM = 100_000


@eqx.filter_jit
def score_matching(key, precision):
    data_key, key = jr.split(key)
    points = WIDTH * jr.normal(data_key, (NUM, 1))

    def loss(energy):
        objective = DenoisingScoreMatching(NOISE)
        return objective.loss(key, energy, None, batch_of(points))[0]

    value, slope = eqx.filter_value_and_grad(loss)(bowl(precision))
    return value, slope.precision


@pytest.mark.parametrize("factor", [0.5, 0.95, 1.05, 2.0])
def test_it_descends_to_the_precision_of_the_blurred_data(factor, key):
    value, slope = score_matching(key, jnp.asarray(factor * BEST))
    assert np.sign(slope) == np.sign(factor - 1)
    # E (xi - sigma a (x + sigma xi))^2 = 1 - 2 a sigma^2 + a^2 sigma^2 / best
    a = factor * BEST
    exact = 1 - 2 * a * NOISE**2 + a**2 * NOISE**2 / BEST
    assert abs(value - exact) < 5 * 2**0.5 * exact / NUM**0.5
    # The broken twin: without the blur the minimum would be at 1 / s^2.
    assert score_matching(key, jnp.asarray(1 / WIDTH**2))[1] > 0


def test_its_noise_stays_on_the_subspace(key):
    flat = KnownEnergy(lambda point: jnp.sum(0 * point), PointCloud((0, 0, 0), 2))
    # Without a score the loss is the mean square of the noise, 4 of 6 coordinates.
    points = jnp.zeros((20_000, 3, 2))
    value, _, info = DenoisingScoreMatching(NOISE).loss(
        key, flat, None, batch_of(points)
    )
    assert abs(value - 4 / 6) < 5 * (8**0.5 / 6) / 20_000**0.5
    assert info == {"denoising_loss": value}
