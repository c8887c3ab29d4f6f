"""Distances between two sets of samples, and nearest neighbors in them."""

import math
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from equistein._check_arguments import check_finite_arguments
from equistein._limits import check_memory
from equistein._numbers import check_integers
from equistein._products import matmul
from equistein._types import Scalar
from equistein.energies import check_labels
from equistein.metrics._checks import are_labels, are_numbers, check_bins, nan_unless

_AT_ONCE = 64  # rows of distances held together


@check_finite_arguments
@eqx.filter_jit
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


@check_finite_arguments
@eqx.filter_jit
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


@check_finite_arguments
@eqx.filter_jit
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


@check_finite_arguments
@eqx.filter_jit
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


class PrecisionAndRecall(NamedTuple):
    """The fractions of samples among the data, and of the data among the samples."""

    precision: Scalar
    recall: Scalar


@check_finite_arguments
@eqx.filter_jit
def precision_and_recall(
    samples: Float[Array, "n feature"],
    data: Float[Array, "m feature"],
    num_neighbors: int = 3,
) -> PrecisionAndRecall:
    r"""Return the fractions of samples among the data, and of data among the samples.

    A point is among others if it is no further from one of them than that one's k-th
    nearest neighbor. Collapsed samples have a precision near 1 and a recall near 0.
    Compare with as many held-out data. Memory is O(n + m).

    References:
        Kynkäänniemi et al. (2019), Improved precision and recall metric for assessing
        generative models, equations 1 and 2.
    """
    if not 1 <= num_neighbors < min(len(samples), len(data)):
        raise ValueError(
            "`precision_and_recall` needs more points than `num_neighbors` >= 1, but "
            f"got {len(samples)} samples, {len(data)} data and {num_neighbors}."
        )
    good = are_numbers(samples, data)
    return PrecisionAndRecall(
        nan_unless(good, _fraction_among(samples, data, num_neighbors)),
        nan_unless(good, _fraction_among(data, samples, num_neighbors)),
    )


@check_finite_arguments
@eqx.filter_jit
def mode_weights(
    samples: Float[Array, "n *shape"], modes: Float[Array, "mode *shape"]
) -> Float[Array, " mode"]:
    """Return the proportion of samples, or their features, nearest to each mode."""
    needed = 2 * samples.size * samples.dtype.itemsize * len(modes)
    check_memory("`mode_weights`", needed, "give fewer samples, or features of them")
    gaps = (samples[:, None] - modes[None]) ** 2
    gaps = gaps.reshape(len(samples), len(modes), -1)
    nearest = jnp.argmin(jnp.sum(gaps, axis=-1), axis=1)
    return nan_unless(are_numbers(samples, modes), proportions(nearest, len(modes)))


@check_finite_arguments
def proportions(labels: Int[Array, " n"], num: int) -> Float[Array, " num"]:
    """Return the proportion of each label 0 to `num - 1`; under jit NaN for others."""
    check_integers("`proportions`", num=num)
    check_memory("`proportions`", 9 * num * (len(labels) + 1), "take a smaller `num`")
    check_labels("proportions", labels, num)
    return _proportions(labels, num)


@eqx.filter_jit
def _proportions(labels: Int[Array, " n"], num: int) -> Float[Array, " num"]:
    means = jnp.mean(labels[:, None] == jnp.arange(num)[None, :], axis=0)
    return nan_unless(are_labels(labels, num), means)


def _mean_distance(x: Float[Array, "n dim"], y: Float[Array, "m dim"]) -> Scalar:
    to_all = lambda point: jnp.mean(jnp.sqrt(_squares(point, y)))
    return jnp.mean(jax.lax.map(to_all, x, batch_size=256))


def _covariance(x: Float[Array, "point dim"]) -> Float[Array, "dim dim"]:
    apart = x - jnp.mean(x, axis=0, keepdims=True)
    return matmul(apart.T, apart) / (len(x) - 1)


def _fraction_among(
    points: Float[Array, "n feature"], others: Float[Array, "m feature"], num: int
) -> Scalar:
    def radius(other):
        # The nearest is the point itself, at distance 0.
        return -jax.lax.top_k(-_squares(other, others), num + 1)[0][num]

    radii = jax.lax.map(radius, others, batch_size=_AT_ONCE)
    among = lambda point: jnp.any(_squares(point, others) <= radii)
    inside = jax.lax.map(among, points, batch_size=_AT_ONCE)
    return jnp.mean(inside.astype(points.dtype))


def _squares(
    point: Float[Array, " dim"], others: Float[Array, "m dim"]
) -> Float[Array, " m"]:
    return jnp.sum((others - point[None]) ** 2, axis=1)
