"""Distances between two sets of samples."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from equistein._gate import finite_gate
from equistein._numbers import check_integers
from equistein._products import matmul
from equistein._types import Scalar
from equistein.metrics._checks import are_numbers, check_bins, nan_unless


@finite_gate
def energy_distance(
    first: Float[Array, "n *shape"], second: Float[Array, "m *shape"]
) -> Scalar:
    r"""The energy distance $2 E|X - Y| - E|X - X'| - E|Y - Y'|$, in units of length.

    The distance of the two empirical distributions: zero only for equal sets, and of
    order $1/n$ for independent samples, so compare it with exact samples of the same
    number. Memory is O(n).

    References:
        Székely and Rizzo (2013), Energy statistics.
    """
    x, y = (z.reshape(len(z), -1) for z in (first, second))
    return 2 * _mean_distance(x, y) - _mean_distance(x, x) - _mean_distance(y, y)


@finite_gate
def wasserstein_1d(
    first: Float[Array, " n"], second: Float[Array, " m"], order: int = 1
) -> Scalar:
    r"""The Wasserstein distance of two samples on the line, of any sizes.

    $$W_p = \Bigl(\int_0^1 |F^{-1}(u) - G^{-1}(u)|^p\, du\Bigr)^{1/p}$$
    """
    check_integers("`wasserstein_1d`", order=order)
    x, y = jnp.sort(first), jnp.sort(second)
    n, m = len(x), len(y)
    # Levels in units of 1 / nm: whole numbers, which are exact.
    levels = np.sort(np.concatenate([m * np.arange(n), n * np.arange(m + 1)]))
    middle = (levels[1:] + levels[:-1]) // 2
    gaps = jnp.abs(x[middle // m] - y[middle // n]) ** order
    weights = jnp.asarray(np.diff(levels) / (n * m), x.dtype)
    return jnp.sum(gaps * weights) ** (1 / order)


@finite_gate
def total_variation(
    first: Float[Array, "*n"],
    second: Float[Array, "*m"],
    limits: tuple[float, float],
    num_bins: int = 200,
) -> Scalar:
    r"""The total variation $\frac12 \sum_b |p_b - q_b|$ of two histograms.

    Values outside the limits are counted in two more bins. For n independent values
    against the exact density it is about $\sum_b \sqrt{p_b / 2 \pi n}$: compare it
    with exact samples of the same number.

    Raises:
        ValueError: If the limits are not finite, or the lower one is not first.
    """
    check_bins("total_variation", num_bins)
    if not -math.inf < limits[0] < limits[1] < math.inf:
        raise ValueError(
            "`total_variation` needs `limits`, two finite numbers, the lower first, "
            f"but got {limits}. Values outside are counted in two more bins."
        )
    edges = jnp.linspace(*limits, num_bins + 1)

    def histogram(values):
        bins = jnp.searchsorted(edges.astype(values.dtype), values.ravel(), "right")
        counts = jnp.bincount(bins, length=num_bins + 2)
        return counts.astype(values.dtype) / values.size

    variation = jnp.sum(jnp.abs(histogram(first) - histogram(second))) / 2
    return nan_unless(are_numbers(first, second), variation)


@finite_gate
def frechet_distance(
    first: Float[Array, "n feature"], second: Float[Array, "m feature"]
) -> Scalar:
    r"""The squared Wasserstein-2 distance of normals fitted to two samples.

    $$|\mu_1 - \mu_2|^2
      + \mathrm{tr}\bigl(\Sigma_1 + \Sigma_2 - 2 (\Sigma_1 \Sigma_2)^{1/2}\bigr)$$

    For n samples of the same distribution it is of order features / n: compare it with
    that of as many held-out data.

    References:
        Heusel et al. (2017), GANs trained by a two time-scale update rule, equation 6.
    """
    if min(len(first), len(second)) < 2:
        raise ValueError(
            "`frechet_distance` needs at least two samples of each, but got "
            f"{len(first)} and {len(second)}."
        )
    shift = jnp.mean(first, axis=0) - jnp.mean(second, axis=0)
    one, two = _covariance(first), _covariance(second)
    # The trace of the root is that of a symmetric matrix, (one^1/2 two one^1/2)^1/2.
    values, vectors = jnp.linalg.eigh(one)
    root = matmul(vectors * jnp.sqrt(jnp.maximum(values, 0))[None], vectors.T)
    squares = jnp.linalg.eigvalsh(matmul(matmul(root, two), root))
    shared = jnp.sum(jnp.sqrt(jnp.maximum(squares, 0)))
    return jnp.sum(shift**2) + jnp.trace(one) + jnp.trace(two) - 2 * shared


@eqx.filter_jit
def _mean_distance(x: Float[Array, "n dim"], y: Float[Array, "m dim"]) -> Scalar:
    def to_all(point):
        squared = jnp.sum((point[None] - y) ** 2, axis=1)
        return jnp.mean(jnp.sqrt(squared))

    return jnp.mean(jax.lax.map(to_all, x, batch_size=256))


def _covariance(x: Float[Array, "point dim"]) -> Float[Array, "dim dim"]:
    apart = x - jnp.mean(x, axis=0, keepdims=True)
    return matmul(apart.T, apart) / (len(x) - 1)
