import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
import scipy.stats

from equistein import metrics

# Compiled whole, which is quicker than one operation after the other.
energy_distance = jax.jit(metrics.energy_distance)
total_variation = jax.jit(metrics.total_variation, static_argnums=(2, 3))
wasserstein_1d = jax.jit(metrics.wasserstein_1d, static_argnames="order")


@pytest.mark.parametrize(("n", "m"), [(1, 1), (7, 7), (6, 9), (300, 1)])
def test_wasserstein_distance_is_scipy_s(n, m, key):
    x_key, y_key = jr.split(key)
    x, y = jr.normal(x_key, (n,)), 1 + 2 * jr.normal(y_key, (m,))
    expected = scipy.stats.wasserstein_distance(x, y)
    assert np.isclose(wasserstein_1d(x, y), expected)
    assert np.isclose(wasserstein_1d(y, x), expected)


def test_wasserstein_distance_by_hand():
    x, y = jnp.array([0.0, 1.0, 2.0]), jnp.array([5.0, 3.0, 3.0])
    assert np.isclose(wasserstein_1d(x, y), (3 + 2 + 3) / 3)
    assert np.isclose(wasserstein_1d(x, y, order=2), ((9 + 4 + 9) / 3) ** 0.5)
    assert wasserstein_1d(x, x[::-1]) == 0
    single = wasserstein_1d(x.astype(jnp.float32), y.astype(jnp.float32))
    assert single.dtype == jnp.float32


def test_energy_distance_by_hand():
    x, y = jnp.array([[0.0], [2.0]]), jnp.array([[3.0], [4.0]])
    # Means of |x - y|, |x - x'| and |y - y'| over all pairs: 2.5, 1 and 0.5.
    assert np.isclose(energy_distance(x, y), 2 * 2.5 - 1 - 0.5)
    assert energy_distance(x, x) == 0


def test_energy_distance_is_the_square_of_scipy_s(key):
    x_key, y_key = jr.split(key)
    x, y = jr.normal(x_key, (300,)), 0.5 + jr.normal(y_key, (270,))
    expected = scipy.stats.energy_distance(x, y) ** 2
    assert np.isclose(energy_distance(x[:, None], y[:, None]), expected)


def test_total_variation_by_hand():
    # Two bins, [0, 1) and [1, 2): proportions 3/4, 1/4 against 1/2, 1/2.
    first, second = jnp.array([[0.1, 0.2], [0.3, 1.5]]), jnp.array([0.5, 1.2])
    assert np.isclose(total_variation(first, second, (0.0, 2.0), 2), 0.25)
    assert np.isclose(total_variation(second, first, (0.0, 2.0), 2), 0.25)
    assert total_variation(first, first.ravel()[::-1], (0.0, 2.0)) == 0
    # All in one bin, or each in its own.
    assert total_variation(first, second, (0.0, 2.0), 1) == 0
    assert total_variation(first, second, (0.0, 2.0), 2_000) == 1


def test_total_variation_counts_values_beyond_the_limits():
    inside = jnp.array([0.5, 0.5, 0.5, 0.5])
    # One below and one above, which are different bins.
    beyond = jnp.array([-7.0, 0.5, 0.5, 9.0])
    assert np.isclose(total_variation(inside, beyond, (0.0, 1.0), 10), 0.5)
    below, above = jnp.array([-1.0, -2.0]), jnp.array([2.0, 3.0])
    assert total_variation(below, above, (0.0, 1.0), 10) == 1
    assert total_variation(below, 5 * below, (0.0, 1.0), 10) == 0


def test_mean_log_likelihood_by_hand():
    points = jnp.array([[1.0, 1.0], [2.0, 0.0]])
    value = metrics.mean_log_likelihood(lambda x: -0.5 * jnp.sum(x**2), points)
    assert np.isclose(value, -(1 + 2) / 2)


def test_mode_weights_and_proportions_by_hand():
    modes = jnp.array([[0.0, 0.0], [4.0, 0.0], [0.0, 9.0]])
    samples = jnp.array([[1.0, 0.0], [0.0, 1.0], [3.0, 1.0], [-1.0, -1.0]])
    assert np.allclose(metrics.mode_weights(samples, modes), [0.75, 0.25, 0.0])
    clouds = jnp.zeros((4, 2, 3)).at[3].set(1.0)
    assert np.allclose(metrics.mode_weights(clouds, clouds[2:]), [0.75, 0.25])
    labels = jnp.array([2, 0, 2, 2])
    assert np.allclose(metrics.proportions(labels, 4), [0.25, 0, 0.75, 0])
