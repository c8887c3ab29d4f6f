import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
import scipy.integrate

from equistein.metrics import virial
from equistein.targets import DoubleWell, LennardJones

pytestmark = pytest.mark.slow


def standard_errors(values, exact):
    """Return how far the mean of independent values is from the exact one."""
    values = np.asarray(values)
    return abs(values.mean() - exact) / (values.std(ddof=1) / len(values) ** 0.5)


def virials(target, points):
    return jax.jit(jax.vmap(lambda x: virial(target.log_density, x[None])))(points)


@pytest.mark.parametrize(("temperature", "passes"), [(1.0, True), (1.25, False)])
def test_reference_samples_of_the_double_well_are_exact(temperature, passes, key):
    # The findings, section 3: mean energy, deviation and shares at temperature 1.
    cold = DoubleWell()
    points = DoubleWell(temperature=temperature).sample(key, 4_096)
    assert np.allclose(np.mean(points, axis=1), 0, atol=1e-10)
    energies = -np.asarray(jax.jit(jax.vmap(cold.log_density))(points))
    right = [
        standard_errors(energies, -22.539) < 4,
        # Four standard errors of a standard deviation, for the kurtosis of a normal.
        abs(energies.std() - 1.906) < 4 * 1.906 / (2 * 4_096) ** 0.5,
    ]
    states = cold.states(points, cold.minima(jr.key(0)))
    for state, share in enumerate([0.485, 0.407, 0.063, 0.040, 0.006]):
        error = (share * (1 - share) / 4_096) ** 0.5
        found = float(jnp.mean(states == state))
        right.append(abs(found - share) < 4 * error + 2e-3)  # shares are rounded
    assert all(right) == passes


@pytest.mark.parametrize(("temperature", "passes"), [(0.5, True), (0.6, False)])
def test_reference_samples_of_a_pair_have_the_exact_energy(temperature, passes, key):
    cold = LennardJones(2, 3, temperature=0.5)
    pair = lambda r: jnp.array([[0.0, 0.0, 0.0], [0.0, 0.0, r]])
    ticks = np.linspace(0.5, 8, 4_001)
    values = np.asarray(jax.vmap(lambda r: cold.log_density(pair(r)))(ticks))
    weights = ticks**2 * np.exp(values - values.max())
    mass = scipy.integrate.simpson(weights, x=ticks)
    mean = scipy.integrate.simpson(weights * -values, x=ticks) / mass
    far = ticks > 1.5
    share = scipy.integrate.simpson(weights[far], x=ticks[far]) / mass
    assert 0.05 < share < 0.95
    points = LennardJones(2, 3, temperature=temperature).sample(key, 4_096)
    energies = -jax.vmap(cold.log_density)(points)
    apart = jnp.linalg.norm(points[:, 0] - points[:, 1], axis=1) > 1.5
    found = (standard_errors(energies, mean), standard_errors(apart, share))
    assert (max(found) < 4) == passes


@pytest.mark.parametrize(("temperature", "passes"), [(1.0, True), (1.5, False)])
def test_reference_samples_of_a_cluster_have_its_virial(temperature, passes, key):
    points = LennardJones(temperature=temperature).sample(key, 512, num_steps=1_000)
    assert points.shape == (512, 13, 3)
    assert np.allclose(np.mean(points, axis=1), 0, atol=1e-10)
    assert (standard_errors(virials(LennardJones(), points), 36) < 4) == passes
