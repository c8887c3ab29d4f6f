"""Energy, score and denoising score matching, and phases, by hand."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from by_hand import batch_of, bowl, divergence_of, STILL
from scipy.optimize import linear_sum_assignment

from equistein.energies import KnownEnergy
from equistein.groups import Cyclic, PointCloud
from equistein.training import (
    DenoisingScoreMatching,
    EnergyMatching,
    FromData,
    paired,
    Phases,
    ScoreMatching,
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


@pytest.mark.slow
def test_the_flow_of_energy_matching_takes_noise_to_one_point(key):
    # To one datum y all paths go straight: |-T grad E - (y - x0)| of E = 0 is known.
    points = jnp.tile(jnp.array([[3.0, 4.0]]), (64, 1))
    loss, _, _ = loss_of(EnergyMatching(0.1), key, bowl(0.0), points)
    # E|y - x0|^2 / (2 s^2), with s^2 = |y|^2 / 2 and E|x0|^2 = 2 s^2
    assert np.isclose(loss, 2.0, atol=5 * (2 / 64) ** 0.5)
    right, _, _ = loss_of(EnergyMatching(0.1), key, bowl(0.0, (-30.0, -40.0)), points)
    assert np.isclose(right, 1.0, atol=5 * (2 / 64) ** 0.5)  # the noise's own spread
    # About y, with T a = 1: -T grad E is (1 - t) (y - x0), and t (y - x0) is left.
    bent, _, _ = loss_of(EnergyMatching(0.1), key, bowl(10.0, (-30.0, -40.0)), points)
    assert np.isclose(bent, 2 / 3, atol=0.3)


def test_pairs_are_the_nearest(key):
    noise, data = jr.normal(key, (2, 12, 3))
    mine = paired(noise, data)
    costs = np.sum((np.asarray(data)[:, None] - np.asarray(noise)[None]) ** 2, axis=-1)
    rows, columns = linear_sum_assignment(costs)
    assert np.isclose(np.sum((mine - data) ** 2), costs[rows, columns].sum())
    assert np.sum((noise - data) ** 2) > 1.2 * np.sum((mine - data) ** 2)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("group", "shape"), [(Cyclic(4), (2,)), (PointCloud("OOO", 2), (3, 2))]
)
def test_aligned_noise_is_nearer_and_still_noise(key, group, shape):
    noise, data = jr.normal(key, (2, 512, *shape))
    noise, data = jax.vmap(group.project)(noise), jax.vmap(group.project)(data)
    middle = jnp.arange(float(np.prod(shape))).reshape(shape)
    data += group.project(middle)[None]
    mine = jax.jit(lambda: paired(noise, data, group))()
    # The ratio is .80 +- .03 for turns and .49 +- .01 for clouds, over 12 keys.
    assert np.sum((mine - data) ** 2) < 0.92 * np.sum((paired(noise, data) - data) ** 2)
    # A random element makes it noise as before: norms are those of the noise.
    norms = lambda x: np.sort(np.sum(np.asarray(x) ** 2, axis=tuple(range(1, x.ndim))))
    assert np.allclose(norms(mine), norms(noise), atol=1e-4)


def test_denoising_over_levels_is_that_of_one_level_between_equal_ones(key):
    points = jr.normal(key, (8, 2))
    one, _, _ = loss_of(DenoisingScoreMatching(0.3), key, bowl(2.0), points)
    same, _, _ = loss_of(DenoisingScoreMatching(0.3, 0.3), key, bowl(2.0), points)
    more, _, _ = loss_of(DenoisingScoreMatching(0.3, 3.0), key, bowl(2.0), points)
    assert np.isclose(one, same, rtol=1e-5)
    assert not np.isclose(one, more, rtol=1e-2)


def test_phases_take_turns(key):
    points = jr.normal(key, (8, 2))
    first, last = DenoisingScoreMatching(0.3), divergence_of(points, STILL)
    phases = Phases([(2, first), (1, last)])
    batch = batch_of(points)
    state = phases.init(key, bowl(2.0), batch)

    @eqx.filter_jit
    def step(state):
        def loss(energy):
            value, after, info = phases.loss(key, energy, state, batch)
            return value, (after, info)

        return eqx.filter_value_and_grad(loss, has_aux=True)(bowl(2.0))

    values, slopes, infos = [], [], []
    for _ in range(4):
        (value, (state, info)), slope = step(state)
        values.append(value)
        slopes.append(slope.precision)
        infos.append(info)
    alone, _, _ = first.loss(key, bowl(2.0), None, batch)
    assert np.allclose(values[:2], alone)
    assert not np.isclose(values[2], alone)
    assert np.isnan(infos[2]["denoising_loss"])
    assert np.isnan(infos[0]["positive_energy"])
    assert infos[0]["largest_energy"] == 0
    assert np.isclose(infos[3]["positive_energy"], jnp.mean(jnp.sum(points**2, 1)))
    assert slopes[0] != slopes[2]


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
