"""Samplers by their defaults on densities that are not of width one."""

import dataclasses
import typing

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import equistein as es
from equistein.samplers._warnings import (
    _of_halves,
    _of_landing,
    _of_populations,
    direction,
)

SCALES = jnp.geomspace(1.0, 100.0, 3)
TURN = jnp.linalg.qr(jr.normal(jr.key(3), (3, 3)))[0]
LOG_Z = 1.5 * np.log(2 * np.pi) + float(jnp.sum(jnp.log(SCALES)))


def rotated(x):
    return -0.5 * jnp.sum((TURN @ x / SCALES) ** 2)


def start(key, num, dim=3):
    return 2 * jr.normal(key, (num, dim))


DEFAULTS = [
    (es.ParallelTempering(), 64, 400),
    (es.ParallelTempering(es.MALA(0.1)), 64, 1_000),
    (es.AnnealedSMC(), 1_024, 150),
]


@pytest.mark.slow
@pytest.mark.parametrize(("sampler", "num", "num_steps"), DEFAULTS)
def test_log_z_of_a_wide_and_rotated_density(sampler, num, num_steps, key):
    with es.samplers.suppress_warnings("began in a place"):
        samples = es.run(key, sampler, rotated, start(key, num), num_steps=num_steps)
    error = samples.summary["log_z_error"]
    assert abs(samples.summary["log_z"] - LOG_Z) < max(4 * error, 0.02)
    assert error < 0.15
    widths = np.std(np.asarray(samples.particles @ TURN.T), axis=0)
    assert np.allclose(widths / SCALES, 1, atol=0.3)


@pytest.mark.slow
@pytest.mark.parametrize("chains", [es.HMC(), es.MALA()])
def test_chains_learn_step_size_and_metric(chains, key):
    samples = es.run(key, chains, rotated, start(key, 128), num_steps=1_200)
    widths = np.std(np.asarray(samples.particles @ TURN.T), axis=0)
    assert np.allclose(widths / SCALES, 1, atol=0.3)
    # The broken twin: a step of that size in the units of the points.
    still = type(chains)(0.5)
    with es.samplers.suppress_warnings():
        other = es.run(key, still, rotated, start(key, 128), num_steps=1_200)
    widths = np.std(np.asarray(other.particles @ TURN.T), axis=0)
    assert not np.allclose(widths / SCALES, 1, atol=0.3)


@pytest.mark.parametrize("inner", [es.HMC(0.7), es.MALA(0.4)])
def test_a_move_keeps_the_density_whatever_the_metric(inner, key):
    """Exact draws stay exact; those of another density do not."""
    x = jr.normal(key, (4_000, 3)) * SCALES[None] @ TURN
    rough = eqx.filter_jit(es.kernels.Preconditioner.by_width)(x)
    metric = eqx.filter_jit(lambda m: m.updated(m.sums(x), len(x)))(rough)
    parameters = inner.parameters(x, learns_metric=True)
    parameters = dataclasses.replace(parameters, metric=metric)
    for factor, exact in ((1.0, True), (1.3, False)):
        density = lambda x, factor=factor: factor * rotated(x)
        path = es.samplers.GeometricPath(density, es.samplers.Normal(x[0], 1.0))
        walkers = jax.jit(jax.vmap(path.evaluate))(x)
        move = jax.jit(
            lambda k, walkers, path=path: inner.move_all(
                k, path, walkers, jnp.ones(()), parameters
            )
        )
        for k in jr.split(key, 8):
            walkers, chances, *_ = move(k, walkers)
        widths = np.std(np.asarray(walkers.point @ TURN.T), axis=0) / SCALES
        assert 0.2 < chances.mean() < 1
        assert np.allclose(widths, 1, atol=0.04) == exact


class Pair(typing.NamedTuple):
    place: jax.Array
    level: jax.Array


@pytest.mark.parametrize("make", [Pair, lambda *a: list(a)])
def test_points_may_be_trees(make, key):
    def density(tree):
        place, level = tree
        return -0.5 * jnp.sum((place - 1) ** 2) - 2 * level**2

    trees = make(jr.normal(key, (16, 2)), jr.normal(key, (16,)))
    samples = es.run(key, es.MALA(0.2), density, trees, num_steps=20)
    assert type(samples.particles) is type(trees)
    assert [x.shape for x in samples.particles] == [(16, 2), (16,)]
    flat = jnp.concatenate([trees[0], trees[1][:, None]], axis=1)
    same = es.run(
        key, es.MALA(0.2), lambda x: density((x[:2], x[2])), flat, num_steps=20
    )
    assert np.allclose(samples.particles[0], same.particles[:, :2])
    keys = jr.split(key, 2)
    both = make(*(jnp.stack([x, x]) for x in trees))
    runs = es.run(keys, es.MALA(0.2), density, both, num_steps=2)
    assert runs.particles[1].shape == (2, 16)
    with pytest.raises(ValueError, match="stacked on axis 0 alike"):
        es.run(key, es.MALA(0.2), density, make(trees[0][:3], trees[1]), num_steps=1)


def test_a_network_with_its_activation_is_a_point(key):
    make = lambda key: eqx.nn.MLP(2, 1, 3, 1, key=key)
    networks = eqx.filter_vmap(make)(jr.split(key, 16))
    normal = lambda net: -0.5 * sum(jnp.sum(x**2) for x in arrays_of(net))
    arrays_of = lambda net: jax.tree.leaves(eqx.filter(net, eqx.is_array))
    density = lambda net: normal(net) - jnp.sum(net(jnp.ones(2)) ** 2)
    samples = es.run(key, es.MALA(0.2), density, networks, num_steps=5)
    assert samples.particles.activation is networks.activation
    assert samples.particles.layers[0].weight.shape == (16, 3, 2)
    with pytest.raises(ValueError, match="stacked on axis 0 alike"):
        es.run(
            key, es.MALA(0.2), density, {"a": jnp.ones((4, 1)), "b": 1.0}, num_steps=1
        )


def test_a_reference_that_is_fitted_again_may_miss_the_support_at_first(key):
    inside = lambda x: jnp.all(jnp.abs(x) < 1)
    density = lambda x: jnp.where(inside(x), -0.5 * jnp.sum(x**2), -jnp.inf)
    start = jr.uniform(key, (16, 8), minval=-1.0)
    with es.samplers.suppress_warnings():
        samples = es.run(
            key, es.ParallelTempering(es.MALA(0.1)), density, start, num_steps=40
        )
    assert np.all(np.abs(samples.particles) < 1)
    fixed = es.samplers.Normal(jnp.zeros(8), 10.0)
    with pytest.raises(ValueError, match="zero density at all"):
        es.run(key, es.ParallelTempering(reference=fixed), density, start, num_steps=1)


def test_a_start_that_is_partly_outside_is_thinned(key):
    inside = lambda x: jnp.where(x[0] > 0, -0.5 * jnp.sum(x**2), -jnp.inf)
    x = jnp.abs(jr.normal(key, (64, 2))).at[:50, 0].multiply(-1)
    for sampler, num in ((es.MALA(0.1), 64), (es.Langevin(1e-4), 14)):
        with es.samplers.collect_warnings() as texts:
            samples = es.run(key, sampler, inside, x, num_steps=3)
        assert any("minus infinity at 50 of 64" in text for text in texts)
        assert samples.particles.shape == (num, 2)
    with pytest.raises(ValueError, match="must be finite at the start"):
        es.run(key, es.MALA(0.1), inside, x.at[:60, 0].set(-1.0), num_steps=1)


@pytest.mark.slow
@pytest.mark.parametrize("sampler", [es.ParallelTempering(), es.AnnealedSMC()])
def test_a_density_that_is_flat_aslant_is_named(sampler, key):
    slant = lambda x: -0.5 * (x[0] + x[1]) ** 2
    for density, warned in ((slant, True), (lambda x: -0.5 * x @ x, False)):
        with es.samplers.collect_warnings() as texts:
            es.run(key, sampler, density, start(key, 256, 2), num_steps=200)
        named = [t for t in texts if "0.71 x[" in t and "no finite integral" in t]
        assert bool(named) == warned, list(texts)


def test_evidence_that_disagrees_is_warned_of(key):
    halves = {"log_z_of_halves": np.array([1.0, 2.0]), "log_z_jackknife": 0.05}
    assert "1.000 and 2.000" in next(_of_halves(halves))
    assert not list(_of_halves(halves | {"log_z_jackknife": 0.2}))
    runs = {"log_z_of_runs": [0.0, 3.0, 1.0], "inverse_temperatures": [1.0, 0.5, 1.0]}
    assert [
        len(list(_of_populations(runs))),
        len(
            list(
                _of_populations(
                    runs
                    | {"log_z_of_runs": [1.0, 1.1, 0.9], "inverse_temperatures": [1.0]}
                )
            )
        ),
    ] == [2, 0]
    assert direction(np.array([1.0, -1.0])) == "0.71 x[0] -0.71 x[1]"
    x = jr.normal(key, (800, 2))
    state = es.AnnealedSMC().init(x, lambda x: -0.5 * x @ x)
    for shift, warned in ((0.0, False), (0.5, True)):
        moved = jr.normal(jr.key(1), (800, 2)).at[:, 1].add(shift)
        landed = type(state)(**vars(state) | {"landed": x, "particles": moved})
        assert bool(list(_of_landing(landed))) == warned
