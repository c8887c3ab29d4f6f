"""Where particles start: in a box, or like the data of each class."""

import dataclasses

import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from by_hand import Ramps

from equistein.energies import JointEnergy, KnownEnergy
from equistein.groups import Cyclic, Trivial
from equistein.metrics import mode_weights
from equistein.samplers import AnnealedSMC, Langevin, MALA, run, suppress_warnings
from equistein.targets import RotatedGaussians
from equistein.training import Box, Normals, SamplingGenerator


def two_classes(key, num):
    """Return points of two elongated classes, some without a label."""
    labels = jnp.arange(num) % 3 - 1
    spread = jnp.where(labels[:, None] == 0, jnp.array([[0.2, 1.0]]), 0.5)
    noise = spread * jr.normal(key, (num, 2))
    return labels, 3.0 * labels[:, None].astype(float) + noise


def test_box_holds_the_data(key):
    data = 5 + jr.normal(key, (50, 2))
    box = Box(data, Trivial())
    assert np.allclose(box.center, np.mean(data, axis=0))
    points = box.sample(key, 2_000)
    assert np.all(np.abs(points - box.center[None]) <= box.reach)
    assert np.max(np.abs(points - box.center[None])) > 0.95 * box.reach
    around_the_origin = Box(data, Cyclic(4))
    assert np.array_equal(around_the_origin.center, [0.0, 0.0])
    assert np.isclose(around_the_origin.reach, np.max(np.abs(data)))


@pytest.mark.slow
def test_normals_have_the_mean_and_the_covariance_of_each_class(key):
    labels, data = two_classes(key, 384)
    start = Normals(data, Trivial(), labels, 2)
    for label in range(2):
        chosen = np.asarray(data[labels == label])
        drawn = np.asarray(start.sample(jr.fold_in(key, label), 20_000, label))
        error = (np.var(chosen, axis=0) / 20_000) ** 0.5
        assert np.all(np.abs(drawn.mean(axis=0) - chosen.mean(axis=0)) < 5 * error)
        wanted = np.cov(chosen.T, bias=True)
        error = np.sqrt(2 / 20_000) * np.outer(*[np.sqrt(np.diag(wanted))] * 2)
        assert np.all(np.abs(np.cov(drawn.T) - wanted) < 5 * error)
        other = np.cov(np.asarray(data[labels == 1 - label]).T, bias=True)
        assert np.any(np.abs(np.cov(drawn.T) - other) > 5 * error)


def test_normals_of_sorted_data_are_as_wide_as_all_of_it(key):
    data = jnp.concatenate([jnp.full((200, 1), -5.0), jnp.full((600, 1), 5.0)])
    drawn = np.asarray(Normals(data, Trivial()).sample(key, 4_000))
    assert np.isclose(drawn.std(), np.asarray(data).std(), rtol=0.05)


def test_normals_of_all_classes_are_a_mixture(key):
    labels, data = two_classes(key, 384)
    drawn = Normals(data, Trivial(), labels, 2).sample(key, 4_000)
    assert np.isclose(np.mean(np.asarray(drawn)[:, 0] > 1.5), 0.5, atol=0.05)


def test_normals_are_moved_by_the_group(key):
    data = jnp.array([[3.0, 0.0]]) + 0.1 * jr.normal(key, (50, 2))
    drawn = np.asarray(Normals(data, Cyclic(4)).sample(key, 4_000))
    angles = np.round(np.arctan2(drawn[:, 1], drawn[:, 0]) / (np.pi / 2)).astype(int)
    shares = np.bincount(angles % 4, minlength=4) / 4_000
    assert np.all(np.abs(shares - 0.25) < 5 * (0.25 * 0.75 / 4_000) ** 0.5)


def test_a_class_without_examples_starts_like_all(key):
    labels, data = two_classes(key, 96)
    start = Normals(data, Trivial(), labels, 3)
    assert np.allclose(start.means[2], np.asarray(data).mean(axis=0))


@pytest.mark.parametrize("few_ancestors", [False, True])  # the twin: not moved
def test_a_population_with_few_ancestors_is_spread_over_orbits(few_ancestors, key):
    target = RotatedGaussians(Cyclic(4), (9.0, 0.0), 0.02 * jnp.eye(2))
    sampler, num = AnnealedSMC(MALA(0.05), num_moves=2), 1_000
    start = Box(target.sample(key, 100), Cyclic(4))
    with suppress_warnings():
        if few_ancestors:
            first = start.sample(key, num)
            drawn = run(key, sampler, target.log_density, first, num_steps=40).particles
        else:
            generator = SamplingGenerator(sampler, start, num_steps=40, num_at_once=num)
            drawn = generator.sample(
                key, KnownEnergy(target.log_density, Cyclic(4)), num
            )
    counts = num * np.asarray(mode_weights(drawn, Cyclic(4).orbit(target.mean)))
    chi2 = np.sum((counts - num / 4) ** 2) / (num / 4)  # of 3 degrees of freedom
    assert (chi2 < 17) != few_ancestors, chi2


@pytest.mark.slow
def test_samples_of_a_class_start_in_it(key):
    data = jnp.concatenate([jnp.full((8, 2), -5.0), jnp.full((8, 2), 5.0)])
    data = data + 0.1 * jr.normal(key, data.shape)
    start = Normals(data, Trivial(), jnp.repeat(jnp.arange(2), 8), 2)
    generator = SamplingGenerator(Langevin(1e-8), start, num_steps=2, num_at_once=6)
    energy = JointEnergy(Ramps(jr.normal(key, (2, 2))))
    for label, place in enumerate((-5.0, 5.0)):
        drawn = generator.sample(key, energy, 6, label)
        assert np.allclose(drawn, place, atol=1.0)
        assert np.array_equal(generator.sample(key, energy, 6, np.int64(label)), drawn)


def test_few_chains_that_run_on_give_any_number_of_points(key):
    density = KnownEnergy(lambda x: -8 * jnp.sum(x**2), Trivial())
    start = Box(jr.normal(key, (20, 1)), Trivial())
    ends = SamplingGenerator(MALA(0.04), start, num_steps=50, num_at_once=1_000)
    apart = dataclasses.replace(ends, every=4)
    points = apart.sample(key, density, 1_000)
    assert points.shape == (1_000, 1)
    assert np.array_equal(points[:8], ends.sample(key, density, 8))
    # In the standard errors of independent points; the broken twin repeats one round.
    error = lambda x: abs(np.mean(x)) * 4 * len(x) ** 0.5
    assert error(points) < 4 < error(np.tile(points[:8], (125, 1)))
