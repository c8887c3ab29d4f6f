import sys
from typing import Any

import blackjax
import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
import scipy.stats

from equistein.groups import PointCloud
from equistein.kernels import Preconditioner
from equistein.samplers import (
    AnnealedSMC,
    from_blackjax,
    GeometricPath,
    Normal,
    ParallelTempering,
    run,
    SamplingWarning,
)

CHAINS = 4_000
CLOUD, SMALL = PointCloud("CCCC", 2), PointCloud("CCO", 2)
HMC = {"algorithm": blackjax.hmc, "num_integration_steps": 3}
SCALES = np.array([1.0, 0.8, 1.4])
slow = pytest.mark.slow


def bowl(x):
    return -0.5 * jnp.sum(x**2)


def target(x):
    return bowl(x / jnp.asarray(SCALES, x.dtype))


@eqx.filter_jit
def one_step(sampler, key, state, density):
    return sampler.step(key, state, density)


@slow
@pytest.mark.parametrize(
    ("options", "temperature"),
    [
        (HMC | {"step_size": 1.1}, 1.0),
        (HMC | {"step_size": 1.1}, 1.3),  # of another density
        ({"algorithm": blackjax.nuts, "step_size": 0.9}, 1.0),
        ({"algorithm": blackjax.adjusted_mclmc, "step_size": 2.0}, 1.0),
    ],
)
def test_law_is_exact_whatever_the_step(options, temperature, key):
    start = 2 * jr.normal(key, (CHAINS, 3))
    density = lambda x: target(x) / temperature
    samples = run(key, from_blackjax(**options), density, start, num_steps=30)
    assert samples.history["acceptance"][-1] < 0.97  # or there was nothing to adjust
    x = np.asarray(samples.particles) / SCALES
    variance = np.abs(np.mean(x**2, axis=0) - 1) / (2 / CHAINS) ** 0.5
    distance = scipy.stats.kstest(x[:, 0], "norm").statistic * CHAINS**0.5
    assert (np.max(variance) < 5 and distance < 2.2) == (temperature == 1)


@slow
@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_chains_stay_on_the_subspace_with_its_law(dtype, key):
    law = Normal(jnp.zeros((4, 2), dtype), 2.0, CLOUD)
    start = jr.normal(key, (CHAINS, 4, 2), dtype) + 1  # off center
    sampler = from_blackjax(**HMC, step_size=2.5, project=CLOUD.project)
    samples = run(key, sampler, law.log_density, start, num_steps=20)
    assert samples.particles.dtype == dtype
    x = np.asarray(samples.particles, float)
    assert np.max(np.abs(x.mean(axis=1))) < 20 * np.finfo(dtype).eps
    squares = np.sum(x**2, axis=(1, 2)) / 2.0**2
    assert abs(squares.mean() - 6) < 5 * (2 * 6 / CHAINS) ** 0.5
    assert scipy.stats.kstest(squares, "chi2", (6,)).pvalue > 1e-6


@slow
def test_without_the_projection_they_leave_it(key):
    law = Normal(jnp.zeros((4, 2)), 2.0, CLOUD)
    start = jax.vmap(CLOUD.project)(jr.normal(key, (16, 4, 2)))
    sampler = from_blackjax(**HMC, step_size=2.5)
    samples = run(key, sampler, law.log_density, start, num_steps=2)
    assert np.max(np.abs(np.mean(samples.particles, axis=1))) > 0.1


@slow
@pytest.mark.parametrize("algorithm", [blackjax.nuts, blackjax.adjusted_mclmc])
def test_single_precision_stays_beside_double(algorithm, key):
    start = jr.normal(key, (16, 3), jnp.float32)
    sampler = from_blackjax(algorithm, step_size=0.5)
    state, info = one_step(sampler, key, sampler.init(start, target), target)
    assert state.particles.dtype == state.walkers.score.dtype == jnp.float32
    assert info.acceptance.dtype == jnp.float32
    assert not np.array_equal(state.particles, start)


@slow
def test_a_point_without_density_is_never_entered(key):
    box = lambda x: jnp.where((x[0] > 0) & (x[0] < 1), 0.0 * x[0], -jnp.inf)
    start = jr.uniform(key, (CHAINS, 1), minval=0.2, maxval=0.8)
    with pytest.warns(SamplingWarning, match="exactly zero at 4000 of 4000"):
        samples = run(
            key, from_blackjax(**HMC, step_size=0.1), box, start, num_steps=40
        )
    x = np.asarray(samples.particles)[:, 0]
    assert np.all((x > 0) & (x < 1))
    assert scipy.stats.kstest(x, "uniform").statistic * CHAINS**0.5 < 2.2


def by_hand(key, density, point):
    """Return the point and the rate of acceptance after BlackJAX's own HMC."""
    algorithm: Any = blackjax.hmc(density, 0.9, jnp.ones(3), num_integration_steps=3)
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        state, info = algorithm.step(key, algorithm.init(point))
    return state.position, info.acceptance_rate


def test_a_step_is_blackjax_s_own(key):
    x, sampler = jr.normal(key, (4, 3)), from_blackjax(**HMC, step_size=0.9)
    state, info = one_step(sampler, key, sampler.init(x, target), target)
    keys = jr.split(key, 4)
    moved = jax.jit(jax.vmap(lambda k, x: by_hand(k, target, x)))
    points, rates = moved(keys, x)
    assert np.allclose(state.particles, points, atol=1e-12)
    assert np.isclose(info.acceptance, np.mean(rates))
    assert np.allclose(state.walkers.value, jax.jit(jax.vmap(target))(points))
    assert np.allclose(state.walkers.score, jax.jit(jax.vmap(jax.grad(target)))(points))


def test_a_move_is_one_of_the_path_s_density(key):
    path = GeometricPath(target, Normal(jnp.zeros(3), 2.0))
    sampler = from_blackjax(**HMC, step_size=0.9)
    x = jnp.array([0.3, -0.5, 1.0])
    walker, beta = path.evaluate(x), jnp.asarray(0.4)
    moved, rate, spent, defined = eqx.filter_jit(sampler.move)(
        key, path, walker, beta, sampler.parameters(x[None])
    )
    one = eqx.filter_jit(lambda k, x: by_hand(k, path.at(beta), x))
    point, expected = one(key, x)
    assert np.allclose(moved.point, point, atol=1e-12)
    assert not np.array_equal(moved.point, x)
    assert np.isclose(rate, expected)
    assert spent == 4  # three steps, and the values at the end
    assert defined
    # Nothing of the density at this temperature is left in the walker.
    there = path.evaluate(moved.point)
    assert all(map(np.allclose, jax.tree.leaves(moved), jax.tree.leaves(there)))


@slow
@pytest.mark.parametrize(
    ("options", "each"),
    [
        (HMC, 3),
        ({"algorithm": blackjax.adjusted_mclmc, "integration_steps_params": (5,)}, 10),
    ],
)
def test_evaluations_are_those_of_the_integrator(options, each, key):
    x = jr.normal(key, (6, 3))
    sampler = from_blackjax(**options, step_size=0.5)
    samples = run(key, sampler, target, x, num_steps=4, record_every=2)
    assert np.array_equal(samples.history["evaluations"], [1 + 2 * each, 1 + 4 * each])


@slow
@pytest.mark.parametrize(
    "options",
    [
        # More steps would come back to where they began, whatever their length.
        HMC | {"acceptance": 0.65, "num_integration_steps": 1},
        {"algorithm": blackjax.adjusted_mclmc},
        {"algorithm": blackjax.nuts},
    ],
)
def test_step_and_metric_are_learned(options, key):
    widths = jnp.linspace(0.2, 5.0, 10)
    start = jr.normal(key, (32, 10))
    sampler, density = from_blackjax(**options), lambda x: bowl(x / widths)
    samples = run(key, sampler, density, start, num_steps=600, record_every=1)
    assert abs(np.mean(samples.history["acceptance"][300:]) - sampler.acceptance) < 0.1
    assert len(set(samples.history["step_size"][300:])) == 1
    found = np.diag(samples.state.parameters.metric.covariance)
    assert np.allclose(found / widths**2, 1, atol=0.3)


def test_adapted_step_follows_the_acceptance():
    sampler = from_blackjax(**HMC, step_size=0.5, acceptance=0.7)
    parameters = sampler.parameters(jnp.zeros((1, 3)))
    sizes = [
        np.exp(sampler.adapt(parameters, jnp.asarray(rate)).log_step_size)
        for rate in (0.5, 0.7, 0.9)
    ]
    assert sizes[0] < 0.5 < sizes[2]
    assert np.isclose(sizes[1], 0.5)


def two_modes(x):
    centers = jnp.array([[-4.0, 0.0], [4.0, 0.0]])
    weights = jnp.log(jnp.array([0.3, 0.7]))
    return jax.nn.logsumexp(weights - 0.5 * jnp.sum((x[None] - centers) ** 2, axis=1))


LOG_Z = np.log(2 * np.pi)


@slow
def test_tempering_finds_both_modes(key):
    inner = from_blackjax(**HMC, num_adapt=30)
    reference = Normal(jnp.zeros(2), 5.0)
    sampler = ParallelTempering(
        inner, num_temperatures=6, reference=reference, num_adapt=60
    )
    start = jnp.array([-4.0, 0.0])[None] + jr.normal(key, (64, 2))
    samples = run(
        key, sampler, two_modes, start, num_steps=260, record_every=10, keep=64
    )
    right = samples.history["particles"][8:, :, 0] > 0
    # Chains are independent of one another: the error is that of their means.
    means = right.mean(axis=0)
    assert abs(means.mean() - 0.7) < 5 * means.std() / 64**0.5
    assert means.std() / 64**0.5 < 0.04
    error = samples.summary["log_z_error"]
    assert error < 0.1
    assert abs(samples.summary["log_z"] - LOG_Z) < 5 * error
    alone = run(key, inner, two_modes, start, num_steps=260)
    assert np.mean(alone.particles[:, 0] > 0) < 0.1


@slow
def test_sequential_monte_carlo_finds_both_modes(key):
    inner = from_blackjax(**HMC, num_adapt=30)
    reference = Normal(jnp.zeros(2), 5.0)
    sampler = AnnealedSMC(inner, reference=reference, num_moves=2)
    samples = run(key, sampler, two_modes, jnp.zeros((1_024, 2)), num_steps=25)
    assert np.all(samples.summary["inverse_temperatures"] == 1)
    right = np.asarray(samples.particles[:, 0] > 0)
    assert abs(right.mean() - 0.7) < 0.08
    assert abs(np.var(samples.particles[right], axis=0) - 1).max() < 0.3
    error = samples.summary["log_z_error"]
    assert error < 0.15
    assert abs(samples.summary["log_z"] - LOG_Z) < 5 * error


@pytest.mark.parametrize(
    "algorithm",
    [blackjax.mhmc, blackjax.rmh, blackjax.nuts(bowl, 0.1, np.ones(2)), "nuts"],
)
def test_other_algorithms_are_refused(algorithm):
    with pytest.raises(ValueError, match="blackjax"):
        from_blackjax(algorithm, step_size=0.1)


def test_the_package_to_install_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "blackjax", None)
    with pytest.raises(ImportError, match=r"pip install 'equistein\[bayes\]'"):
        from_blackjax("nuts")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("num_adapt", -1),
        ("step_size", 0.0),
        ("step_size", float("nan")),
        ("acceptance", 1.0),
        ("inverse_mass_matrix", [1.0]),
        ("max_num_doublings", 3),
    ],
)
def test_wrong_arguments_are_refused(name, value, unchecked):
    with pytest.raises(ValueError, match=name):
        from_blackjax(**HMC | {"step_size": 0.1, name: value})


def test_a_number_of_steps_is_needed():
    with pytest.raises(ValueError, match="`num_integration_steps`"):
        from_blackjax(blackjax.hmc, step_size=0.1)


@pytest.mark.parametrize(
    ("options", "shape", "words"),
    [
        ({"algorithm": blackjax.adjusted_mclmc}, (1,), "two dimensions"),
        (HMC | {"project": jnp.tanh}, (2,), "projection"),
        (HMC | {"project": CLOUD.project}, (3, 2), "`species`"),
    ],
)
def test_points_that_do_not_fit_are_refused(options, shape, words, key):
    sampler = from_blackjax(**options, step_size=1.0)
    with pytest.raises(ValueError, match=words):
        run(key, sampler, bowl, jr.normal(key, (5, *shape)), num_steps=1)


def test_the_basis_is_orthonormal_and_spans_the_image(key):
    metric = Preconditioner.of_subspace(SMALL.project, (3, 2))
    basis = np.asarray(metric.factor)
    assert basis.shape == (6, 4)
    assert np.allclose(basis.T @ basis, np.eye(4), atol=1e-12)
    point = jr.normal(key, (3, 2))
    there = metric.push(metric.pull(point.ravel())).reshape(3, 2)
    assert np.allclose(there, SMALL.project(point), atol=1e-12)


def test_a_basis_is_found_while_compiling(key):
    push = jax.jit(lambda z: Preconditioner.of_subspace(SMALL.project, (3, 2)).push(z))
    there = push(jr.normal(key, (4,))).reshape(3, 2)
    assert np.allclose(there, SMALL.project(there), atol=1e-12)


@pytest.mark.parametrize(
    "project",
    [
        jnp.sin,
        lambda x: x + 1,
        lambda x: 0.5 * x,
        lambda x: x.at[0].add(x[1]).at[1].set(0.0),
        lambda x: 0 * x,
    ],
)
def test_what_has_no_coordinates_is_refused(project):
    with pytest.raises(ValueError, match="`project`"):
        Preconditioner.of_subspace(project, (3,))
