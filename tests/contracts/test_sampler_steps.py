import dataclasses

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
import pytest
from sampler_registry import log_density, one_step, SAMPLERS, start

from equistein.groups import PointCloud
from equistein.kernels import Equivariant, measured_bandwidth, Median, Pullback, RBF
from equistein.samplers import advance, Langevin, MALA, run, SVGD
from equistein.targets import DoubleWell

# ------------------------------------------------------------ parts of the step


def test_repellers_join_the_sum_and_stay(key):
    x_key, y_key = jr.split(key)
    x, y = start(x_key), start(y_key, num=3)
    sampler = SVGD(RBF(0.7), optax.sgd(0.1), score_clip=0.5)
    repelled = dataclasses.replace(sampler, repellers=y)
    state, _ = one_step(repelled, key, repelled.init(x, log_density))
    sources = jnp.concatenate([x, y])
    scores = jax.vmap(jax.grad(log_density))(sources)
    norms = jnp.linalg.norm(scores, axis=1, keepdims=True)
    assert (norms[len(x) :] > 0.5).any()
    scores = scores * jnp.minimum(0.5 / norms, 1)
    force = sampler.kernel.stein_force(x, sources, scores)
    assert np.allclose(state.particles, x + 0.1 * force, atol=1e-12)
    assert np.array_equal(repelled.repellers, y)
    samples = run(key, repelled, log_density, x, num_steps=1, record_every=1)
    assert np.allclose(samples.particles, state.particles, atol=1e-12)
    free = run(
        key, dataclasses.replace(repelled, repellers=None), log_density, x, num_steps=1
    )
    alone = run(key, sampler, log_density, x, num_steps=1)
    assert np.array_equal(free.particles, alone.particles)


def test_repellers_are_projected(key):
    y = jr.normal(key, (3, 4, 2))
    centered = y - jnp.mean(y, axis=1, keepdims=True)
    density = lambda x: -jnp.sum(x**2)
    kernel = Equivariant(RBF(0.5), PointCloud("CCCC", 2))
    first, second, other = (
        run(
            key, SVGD(kernel, optax.sgd(0.1), repellers=each), density,
            jr.normal(jr.key(1), (5, 4, 2)), num_steps=2,
        ).particles
        for each in (y, centered, 2 * y)
    )  # fmt: skip
    assert np.allclose(first, second)
    assert not np.allclose(first, other)


def test_repellers_may_be_traced(key):
    x, y = start(key), start(jr.key(1), num=3)
    sampler = SAMPLERS["svgd"]

    @jax.jit
    def moved(x, y):
        repelled = dataclasses.replace(sampler, repellers=y)
        return advance(
            key, repelled, log_density, repelled.init(x, log_density), 2
        ).particles

    repelled = dataclasses.replace(sampler, repellers=y)
    straight = run(key, repelled, log_density, x, num_steps=2)
    assert np.allclose(moved(x, y), straight.particles, atol=1e-12)
    # Inside compiled code even constants are traced.
    constant = jax.jit(lambda x: repelled.init(x, log_density).particles)
    assert np.array_equal(constant(x), x)


@pytest.mark.slow
def test_annealing_scales_the_score(key):
    x = start(key)
    sampler = SVGD(RBF(0.7), optax.sgd(0.1), annealing=lambda step: step / 10)
    scores = jax.vmap(jax.grad(log_density))(x)
    state = sampler.init(x, log_density)
    for beta in (0.0, 0.1):
        before = state.particles
        scores = jax.vmap(jax.grad(log_density))(before)
        force = sampler.kernel.stein_force(before, before, beta * scores)
        state, info = one_step(sampler, key, state)
        assert np.isclose(info.inverse_temperature, beta)
        assert np.allclose(state.particles, before + 0.1 * force, atol=1e-12)


def test_long_scores_are_shortened(key):
    x = jnp.array([[100.0, 0.0]])
    sampler = SVGD(RBF(1.0), optax.sgd(1.0), score_clip=2.0)
    bowl = lambda x: -0.5 * jnp.sum(x**2)
    samples = run(key, sampler, bowl, x, num_steps=1)
    assert np.allclose(samples.particles, [[98.0, 0.0]])


@pytest.mark.slow
def test_langevin_step_has_the_drift_and_the_spread_it_should(key):
    # With a tiny step of the optimizer the update is x + eta s + sqrt(2 eta) noise.
    x = jnp.full((20_000, 1), 3.0)
    sampler = SVGD(RBF(1.0), optax.sgd(0.0), langevin=0.02)
    bowl = lambda x: -0.5 * jnp.sum(x**2)
    state, _ = sampler.step(key, sampler.init(x, bowl), bowl)
    moved = np.asarray(state.particles - x)
    variance = 2 * 0.02
    assert abs(moved.mean() + 0.02 * 3) < 5 * (variance / 20_000) ** 0.5
    assert abs(moved.var() / variance - 1) < 5 * (2 / 20_000) ** 0.5


def test_langevin_length_may_follow_the_step(key):
    x = start(key)
    sampler = SVGD(
        RBF(0.7), optax.sgd(0.1), langevin=lambda step: jnp.where(step < 1, 0.0, 0.1)
    )
    still = SVGD(RBF(0.7), optax.sgd(0.1))
    noisy, _ = sampler.step(key, sampler.init(x, log_density), log_density)
    plain, _ = still.step(key, still.init(x, log_density), log_density)
    assert np.allclose(noisy.particles, plain.particles)
    noisy, _ = sampler.step(key, noisy, log_density)
    plain, _ = still.step(key, plain, log_density)
    assert np.max(np.abs(noisy.particles - plain.particles)) > 0.01


@pytest.mark.parametrize(
    ("kernel", "project"),
    [
        (Pullback(RBF(0.5), DoubleWell().features), None),
        (RBF(0.5), DoubleWell().group.project),
    ],
)
def test_updates_of_any_optimizer_keep_the_center_of_mass(kernel, project, key):
    target = DoubleWell()
    sampler = SVGD(kernel, optax.adam(0.05), project=project)
    x = target.start(key, 6)
    samples = run(key, sampler, target.log_density, x, num_steps=50)
    assert np.max(np.abs(np.mean(samples.particles, axis=1))) < 1e-12
    assert np.std(samples.particles - x) > 0.1


@pytest.mark.parametrize("shape", [(4, 2), (3, 3), (6,)])
@pytest.mark.parametrize(
    "make",
    [
        lambda project: Langevin(0.1, project=project),
        lambda project: MALA(0.1, project=project),
        lambda project: SVGD(RBF(0.5), optax.sgd(0.1), project=project),
    ],
)
def test_points_that_the_projection_does_not_fit_are_refused(make, shape, key):
    sampler, bowl = make(PointCloud("CCO", 2).project), lambda x: -jnp.sum(x**2)
    with pytest.raises(ValueError, match="`species`"):
        run(key, sampler, bowl, jr.normal(key, (5, *shape)), num_steps=1)
    sampler = make(lambda point: point[0])
    with pytest.raises(ValueError, match="`project`"):
        run(key, sampler, bowl, jr.normal(key, (5, *shape)), num_steps=1)


def test_median_bandwidth_is_taken_anew_every_so_many_steps(key):
    x = start(key)
    sampler = SVGD(RBF(Median(every=3)), optax.sgd(0.5))
    samples = run(key, sampler, log_density, x, num_steps=7, record_every=1)
    bandwidths = samples.history["bandwidth"]
    assert len(set(bandwidths[:3])) == 1
    assert len(set(bandwidths[3:6])) == 1
    assert len(set(bandwidths)) == 3
    assert np.isclose(bandwidths[0], measured_bandwidth(sampler.kernel, x))


# ------------------------------------------------------------ Langevin


def test_langevin_chain_has_the_drift_and_the_spread_it_should(key):
    x = jnp.full((20_000, 1), 3.0)
    sampler = Langevin(0.02, annealing=lambda step: 0.5, score_clip=2.0)
    bowl = lambda x: -0.5 * jnp.sum(x**2)
    state, info = sampler.step(key, sampler.init(x, bowl), bowl)
    moved = np.asarray(state.particles - x)
    variance = 2 * 0.02
    # The score, -3, is shortened to -2 and halved by the temperature.
    assert abs(moved.mean() + 0.02 * 1) < 5 * (variance / 20_000) ** 0.5
    assert abs(moved.var() / variance - 1) < 5 * (2 / 20_000) ** 0.5
    assert info.inverse_temperature == 0.5
    assert np.isclose(info.score_norm, 1.0)


@pytest.mark.parametrize(("temperature", "passes"), [(1.0, True), (1.3, False)])
def test_langevin_chains_reach_the_variance_of_their_discrete_law(
    temperature, passes, key
):
    # x <- (1 - eta) x + sqrt(2 eta) xi has variance 1 / (1 - eta / 2).
    bowl = lambda x: -0.5 * jnp.sum(x**2) / temperature
    samples = run(
        key, Langevin(0.2), bowl, jnp.zeros((4_000, 1)), num_steps=60, record_every=60
    )
    spread = np.var(samples.particles) * (1 - 0.1)
    assert (abs(spread - 1) < 5 * (2 / 4_000) ** 0.5) == passes
