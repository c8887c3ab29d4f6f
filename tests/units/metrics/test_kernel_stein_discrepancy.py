import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from equistein import metrics
from equistein.features import Radius
from equistein.groups import Cyclic
from equistein.kernels import Equivariant, IMQ, measured_bandwidth, Pullback, RBF

# Compiled whole, which is quicker than one operation after the other.
kernel_stein_discrepancy = eqx.filter_jit(metrics.kernel_stein_discrepancy)


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


def test_stein_discrepancy_takes_a_bandwidth_rule(key):
    points = jr.normal(key, (10, 2))
    bowl = lambda x: -0.5 * jnp.sum(x**2)
    ruled = kernel_stein_discrepancy(bowl, points, RBF())
    bandwidth = measured_bandwidth(RBF(), points)
    fixed = kernel_stein_discrepancy(bowl, points, RBF(bandwidth))
    assert np.isclose(ruled, fixed)
