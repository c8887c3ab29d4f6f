"""Free energies and thermal averages against integrals over a line."""

import dataclasses

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import equistein as es

LADDER = np.array([1.0, 0.5, 0.25, 0.1])
EDGES = np.linspace(-2, 2, 21)
X = np.linspace(-4, 4, 8001)


def log_density(point):
    """Return a double well, deeper at the right by about 1 kT."""
    x = point[0]
    return -6 * (x**2 - 1) ** 2 + 0.5 * x - 0.5 * point[1] ** 2


def exact_weights(beta=1.0):
    """Return the normalized density of the first coordinate on a grid."""
    weights = np.exp(beta * (-6 * (X**2 - 1) ** 2 + 0.5 * X))
    return weights / weights.sum()


def exact_bins(beta=1.0):
    chances = np.histogram(X, EDGES, weights=exact_weights(beta))[0]
    return chances / chances.sum()


@pytest.fixture(scope="module")
def runs():
    """Consecutive runs of tempering, the first of which adapts."""
    with jax.enable_x64(True):
        sampler = es.ParallelTempering(es.HMC(), LADDER, num_adapt=100)
        start = 0.8 * jr.normal(jr.key(0), (48, 2))
        parts = [es.run(1, sampler, log_density, start, num_steps=200, check=False)]
        for _ in range(30):
            state = parts[-1].state
            more = es.run(
                1, sampler, log_density, initial_state=state, num_steps=5, check=False
            )
            parts.append(more)
        return parts[1:]


first = lambda point: point[0]


def test_a_ladder_gives_the_free_energy_with_honest_errors(runs):
    free = es.metrics.free_energy(runs, first, EDGES)
    exact = -np.log(exact_bins())
    likely = exact < 8 + exact.min()
    errors = free.errors[likely]
    gaps = -np.log(free.probabilities[likely]) - exact[likely]
    assert np.max(errors) < 0.5
    assert np.sqrt(np.mean((gaps / errors) ** 2)) < 2
    assert np.min(free.values) == 0
    barrier = np.abs(free.centers[0]) < 0.15
    assert np.all(free.errors[barrier] < 0.4)


def test_points_of_all_rungs_as_if_cold_are_refuted(runs):
    points = np.concatenate(
        [np.asarray(r.state.replicas.walker.point).reshape(-1, 2) for r in runs]
    )
    broken = es.metrics.free_energy(points, first, EDGES)
    exact = exact_bins()
    error = np.nan_to_num(broken.errors * broken.probabilities)
    assert np.max(np.abs(broken.probabilities - exact) / np.maximum(error, 1e-9)) > 6


def test_differences_between_basins(runs):
    free = es.metrics.free_energy(runs, first, EDGES)
    left = free.centers[0] < 0
    gap, error = free.difference(left, ~left)
    exact = exact_bins()
    expected = np.log(exact[:10].sum() / exact[10:].sum())
    assert 0 < error < 0.2
    assert abs(gap - expected) < 3 * error
    assert np.isclose(free.difference(~left, left)[0], -gap)


def test_two_variables_and_their_margins(runs):
    both = lambda point: point
    free = es.metrics.free_energy(runs, both, (EDGES, np.linspace(-9, 9, 7)))
    alone = es.metrics.free_energy(runs, first, EDGES)
    assert free.values.shape == (20, 6)
    assert np.allclose(free.probabilities.sum(axis=1), alone.probabilities)
    assert free.centers[1].shape == (20, 6)
    assert es.metrics.free_energy(runs, both, 5).values.shape == (5, 5)


def test_energies_and_heat_capacities_over_temperature(runs):
    betas = np.array([1.0, 0.7, 0.3])
    found = es.metrics.thermal_averages(runs, betas)
    for i, beta in enumerate(betas):
        weights, energies = exact_weights(beta), 6 * (X**2 - 1) ** 2 - 0.5 * X
        mean = weights @ energies
        heat = beta**2 * (weights @ (energies - mean) ** 2) + 0.5
        gap = found["energies"][i] - (mean + 0.5 / beta)
        assert abs(gap) < 3.5 * found["energy_errors"][i] < 0.2
        gap = found["heat_capacities"][i] - heat
        assert abs(gap) < 3.5 * found["heat_capacity_errors"][i] < 0.3


def test_a_ladder_that_ends_at_a_reference(key):
    sampler = es.ParallelTempering(es.HMC(), num_temperatures=5, num_adapt=100)
    start = 0.8 * jr.normal(key, (32, 2))
    part = es.run(key, sampler, log_density, start, num_steps=200, check=False)
    parts = []
    for _ in range(20):
        part = es.run(
            key, sampler, log_density, initial_state=part.state, num_steps=5,
            check=False,
        )  # fmt: skip
        parts.append(part)
    free = es.metrics.free_energy(parts, first, EDGES)
    left = free.centers[0] < 0
    gap, error = free.difference(left, ~left)
    exact = exact_bins()
    expected = np.log(exact[:10].sum() / exact[10:].sum())
    assert abs(gap - expected) < 3.5 * error < 1
    heat = es.metrics.thermal_averages(parts, [1.0])
    assert abs(heat["energies"][0] - 0.2) < 1


def test_other_samples_and_weights(key):
    points = jr.normal(key, (4000, 1))
    free = es.metrics.free_energy(points, first, np.linspace(-2, 2, 5))
    expected = 0.5 * (1.5**2 - 0.5**2)
    assert free.values[1] < 0.1
    assert abs(free.values[0] - free.values[1] - expected) < 0.2
    # Each point is a chain: the errors are those of counts.
    counts = free.probabilities * 4000
    assert np.allclose(free.errors, np.sqrt(1 / counts - 1 / 4000), rtol=0.5)
    shifted = lambda point: -0.5 * jnp.sum((point - 0.5) ** 2)
    normal = lambda point: -0.5 * jnp.sum(point**2)
    weighted = es.metrics.reweight(points, normal, shifted)
    moved = es.metrics.free_energy(weighted, first, np.linspace(-1.5, 2.5, 5))
    assert abs(moved.values[0] - moved.values[3]) < 3 * np.hypot(*moved.errors[[0, 3]])

    kept = es.run(
        key, es.MALA(), normal, points[:8], num_steps=40, record_every=4, keep=8
    )
    assert es.metrics.free_energy(kept, first, 4).replicates.shape == (8, 4)


def test_bad_samples_are_refused(runs, key):
    points = jr.normal(key, (10, 2))
    with pytest.raises(ValueError, match="two chains"):
        es.metrics.free_energy(points[:1], first, 4)
    with pytest.raises(ValueError, match="collective_variable"):
        es.metrics.free_energy(points, lambda x: jnp.ones(3), 4)
    with pytest.raises(ValueError, match="collective_variable"):
        es.metrics.free_energy(points, lambda x: jnp.log(x[0] - 99), 4)
    with pytest.raises(ValueError, match="bins"):
        es.metrics.free_energy(points, first, [100.0, 101.0])
    with pytest.raises(ValueError, match="ParallelTempering"):
        es.metrics.thermal_averages(points, [1.0])
    state = dataclasses.replace(
        runs[0].state, inverse_temperatures=0.9 * runs[0].state.inverse_temperatures
    )
    other = dataclasses.replace(runs[0], state=state)
    with pytest.raises(ValueError, match="ladder"):
        es.metrics.free_energy([*runs, other], first, 4)
    for betas in ([300.0, 400.0], [1.0, 0.01], [np.nan]):
        with pytest.raises(ValueError, match="within the ladder"):
            es.metrics.thermal_averages(runs, betas)


def test_bins_in_another_unit_are_warned_of(runs):
    for variable, edges in ((lambda x: 57.3 * x[0], EDGES), (first, 57.3 * EDGES)):
        with pytest.warns(UserWarning, match="radians"):
            es.metrics.free_energy(runs, variable, edges)
