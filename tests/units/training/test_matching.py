"""Score matching and denoising score matching, by hand."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from by_hand import batch_of, bowl, STILL

from equistein.diffusion import DenoisingScoreMatching, ScoreMatching
from equistein.energies import KnownEnergy
from equistein.groups import PointCloud
from equistein.training import (
    FromData,
)


def loss_of(objective, key, energy, points):
    batch = batch_of(points)
    state = objective.init(key, energy, batch)
    return objective.loss(key, energy, state, batch)


def test_score_matching_is_least_at_the_precision_of_the_data(key):
    points = 0.5 * jr.normal(key, (4_000, 2))

    @jax.jit
    def slope(precision):
        def loss(a):
            return loss_of(ScoreMatching(), key, bowl(a), points)[0]

        return jax.grad(loss)(precision)

    # E[a^2 x^2 / 2 - a xi^2] is least at 1 / E[x^2], here 4; its slope is a/4 - 1.
    assert abs(slope(4.0)) < 5 * (2 / 8_000) ** 0.5 * 2
    assert slope(3.0) < -0.15
    assert slope(5.0) > 0.15


def test_denoising_over_levels_is_that_of_one_level_between_equal_ones(key):
    points = jr.normal(key, (8, 2))
    one, _, _ = loss_of(DenoisingScoreMatching(0.3), key, bowl(2.0), points)
    same, _, _ = loss_of(DenoisingScoreMatching(0.3, 0.3), key, bowl(2.0), points)
    more, _, _ = loss_of(DenoisingScoreMatching(0.3, 3.0), key, bowl(2.0), points)
    assert np.isclose(one, same, rtol=1e-5)
    assert not np.isclose(one, more, rtol=1e-2)


def test_chains_from_data_begin_there(key):
    points = jr.normal(key, (8, 2))
    batch = batch_of(points)
    drawn, _, info = FromData(STILL, num_steps=3).draw(key, bowl(1.0), None, batch)
    assert np.allclose(drawn, points, atol=1e-8)
    assert info["displacement"] < 1e-8


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
