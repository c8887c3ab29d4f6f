"""Linear energies whose samples get the mean features of their data."""

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import equistein as es
from equistein.energies import LinearEnergy, values_at
from equistein.features import Polynomials
from equistein.groups import Trivial

AXIS = np.linspace(-4, 4, 2_001)
TRUE = np.exp(-((AXIS**2 - 2.5) ** 2) - 0.6 * AXIS)
TRUE /= TRUE.sum()  # .86 of it is in the left mode; few points are between both


def drawn(seed, num=500):
    uniform = np.random.default_rng(seed).random(num)
    return jnp.asarray(np.interp(uniform, np.cumsum(TRUE), AXIS)[:, None], float)


def fit(seed, data, **options):
    energy = LinearEnergy(Polynomials(Trivial(), 4))
    fitted = es.fit_linear(seed, energy, data, progress=False, **options)
    return eqx.tree_at(lambda f: f.generator.num_steps, fitted, 200)


def learned(fitted):
    energies = np.asarray(values_at(fitted.energy, jnp.asarray(AXIS[:, None], float)))
    density = np.exp(energies.min() - energies)
    return density / density.sum()


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_modes_that_few_points_connect_get_the_weights_of_the_data(seed):
    data = drawn(seed)
    before = fit(seed, data)
    after = before.match_moments(seed, data, num_samples=500)
    divergence = lambda density: np.sum(TRUE * np.log(TRUE / density))
    # The broken twin: the solve alone, whose left mode has .53, 1 and 1.
    assert divergence(learned(after)) < 0.03 < 0.2 < divergence(learned(before))
    at = after.energy.features.in_double
    mean, error = (f(at(data), axis=0) for f in (np.mean, np.std))
    expected = learned(after) @ at(jnp.asarray(AXIS[:, None], float))
    assert np.all(np.abs(expected - mean) < 4 * error * (2 / 500) ** 0.5)
    # It is sure of more than the solve is.
    ends = jnp.asarray([[-1.6], [1.6]])
    known, now = (each.energy_errors(ends[:1], ends[1:]) for each in (before, after))
    assert now < 0.5 * known


def test_forces_leave_nothing_to_match():
    data = drawn(0)
    forces = -(4 * data * (data**2 - 2.5) + 0.6)
    before = fit(0, data, forces=forces)
    after = before.match_moments(0, data, num_samples=200)
    np.testing.assert_allclose(
        after.energy.coefficients, before.energy.coefficients, atol=1e-3
    )


def test_weights_are_those_of_the_data():
    data = drawn(4)
    weights = np.where(data[:, 0] < 0, 1.0, 8.0)
    fitted = fit(4, data, weights=weights)
    fitted = fitted.match_moments(4, data, weights=weights, num_samples=500)
    known = weights[np.asarray(data)[:, 0] < 0].sum() / weights.sum()
    assert abs(learned(fitted)[AXIS < 0].sum() - known) < 0.1


def test_only_one_solve_has_moments_to_match():
    data, labels = drawn(0, 60), np.arange(60) % 2
    fitted = fit(0, data, labels=labels)
    with pytest.raises(ValueError, match="without classes"):
        fitted.match_moments(jr.key(0), data)
