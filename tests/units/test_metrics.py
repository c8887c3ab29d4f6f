import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
import scipy.stats

from equistein.features import Radius
from equistein.groups import Cyclic
from equistein.kernels import Equivariant, IMQ, Pullback, RBF
from equistein.metrics import (
    energy_distance,
    kernel_stein_discrepancy,
    mean_log_likelihood,
    mode_weights,
    proportions,
    wasserstein_1d,
)


@pytest.mark.parametrize(
    ("n", "m"), [(1, 1), (7, 7), (6, 9), (9, 6), (5, 20), (300, 1)]
)
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


@pytest.mark.parametrize(("n", "m"), [(5, 8), (300, 270)])
def test_energy_distance_is_the_square_of_scipy_s(n, m, key):
    x_key, y_key = jr.split(key)
    x, y = jr.normal(x_key, (n,)), 0.5 + jr.normal(y_key, (m,))
    expected = scipy.stats.energy_distance(x, y) ** 2
    assert np.isclose(energy_distance(x[:, None], y[:, None]), expected)


def test_energy_distance_takes_points_of_any_shape(key):
    x_key, y_key = jr.split(key)
    x, y = jr.normal(x_key, (6, 3, 2)), jr.normal(y_key, (9, 3, 2))
    flat = energy_distance(x.reshape(6, 6), y.reshape(9, 6))
    assert np.isclose(energy_distance(x, y), flat)
    assert flat > 0


def test_mode_weights_by_hand():
    modes = jnp.array([[0.0, 0.0], [4.0, 0.0], [0.0, 9.0]])
    samples = jnp.array([[1.0, 0.0], [0.0, 1.0], [3.0, 1.0], [-1.0, -1.0]])
    assert np.allclose(mode_weights(samples, modes), [0.75, 0.25, 0.0])
    clouds = jnp.zeros((4, 2, 3)).at[3].set(1.0)
    assert np.allclose(mode_weights(clouds, clouds[2:]), [0.75, 0.25])


def test_shares_by_hand():
    assert np.allclose(proportions(jnp.array([2, 0, 2, 2]), 4), [0.25, 0, 0.75, 0])


def test_mean_log_likelihood_by_hand():
    points = jnp.array([[1.0, 1.0], [2.0, 0.0]])
    value = mean_log_likelihood(lambda x: -0.5 * jnp.sum(x**2), points)
    assert np.isclose(value, -(1 + 2) / 2)


def brute_force_discrepancy(log_density, points, kernel):
    r"""Return the root of $\frac1{n^2} \sum_{ij} u(x_i, x_j)$, by its definition."""
    shape = points.shape[1:]
    flat = points.reshape(len(points), -1)
    score = jax.grad(lambda x: log_density(x.reshape(shape)))
    matrix = lambda x, y: kernel.matrix(x.reshape(shape), y.reshape(shape))

    def term(x, y):
        k, s, t = matrix(x, y), score(x), score(y)
        along_x = jnp.einsum("abb->a", jax.jacfwd(matrix, 1)(x, y)) @ s
        along_y = jnp.einsum("aba->b", jax.jacfwd(matrix, 0)(x, y)) @ t
        both = jax.jacfwd(jax.jacfwd(matrix, 0), 1)(x, y)
        return s @ k @ t + along_x + along_y + jnp.einsum("abab->", both)

    terms = jax.jit(jax.vmap(jax.vmap(term, (None, 0)), (0, None)))(flat, flat)
    return np.sqrt(np.mean(terms))


@pytest.mark.parametrize(
    "kernel",
    [
        RBF(0.8),
        IMQ(1.0),
        Equivariant(IMQ(1.0), Cyclic(4)),
        Pullback(RBF(1.0), Radius()),
    ],
    ids=["rbf", "imq", "c4", "radius"],
)
def test_stein_discrepancy_is_what_its_definition_says(kernel, key):
    log_density = lambda x: -0.25 * jnp.sum(x**2) ** 2
    points = jr.normal(key, (6, 2))
    value = kernel_stein_discrepancy(log_density, points, kernel)
    assert np.isclose(value, brute_force_discrepancy(log_density, points, kernel))


def test_stein_discrepancy_of_exact_samples_is_the_smallest(key):
    points = jr.normal(key, (200, 2))
    bowl = lambda x: -0.5 * jnp.sum(x**2)
    sets = {"exact": points, "shifted": points + 0.5, "narrow": 0.5 * points}
    found = {
        name: float(kernel_stein_discrepancy(bowl, x, IMQ(1.0)))
        for name, x in sets.items()
    }
    assert 0 < found["exact"] < 0.5 * min(found["shifted"], found["narrow"])


def test_stein_discrepancy_takes_a_bandwidth_rule(key):
    points = jr.normal(key, (10, 2))
    bowl = lambda x: -0.5 * jnp.sum(x**2)
    ruled = kernel_stein_discrepancy(bowl, points, RBF())
    fixed = kernel_stein_discrepancy(bowl, points, RBF(RBF().length(points)))
    assert np.isclose(ruled, fixed)
