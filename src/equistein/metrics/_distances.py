"""Distances between two sets of samples."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from equistein._gate import finite_gate
from equistein._limits import check_made
from equistein._numbers import check_integers
from equistein._types import Scalar
from equistein.metrics._known_labels import are_numbers, nan_unless

_BYTES = 40  # of a bin: its edges, and what is counted


@finite_gate
def energy_distance(
    first: Float[Array, "n *shape"], second: Float[Array, "m *shape"]
) -> Scalar:
    r"""The energy distance $2 E|X - Y| - E|X - X'| - E|Y - Y'|$, in units of length.

    The distance of the two empirical distributions: the means run over all pairs, so it
    is never negative and zero only for equal sets; for independent samples it has a
    floor of order $1/n$. Compare it with exact samples of the same number. Memory is
    O(n).

    Args:
        first: Samples of one distribution, stacked on axis 0.
        second: Samples of the other.

    References:
        Székely and Rizzo (2013), Energy statistics.
    """
    x, y = (z.reshape(len(z), -1) for z in (first, second))
    return 2 * _mean_distance(x, y) - _mean_distance(x, x) - _mean_distance(y, y)


@finite_gate
def wasserstein_1d(
    first: Float[Array, " n"], second: Float[Array, " m"], order: int = 1
) -> Scalar:
    r"""The Wasserstein distance of two samples on the line.

    $$W_p = \Bigl(\int_0^1 |F^{-1}(u) - G^{-1}(u)|^p\, du\Bigr)^{1/p}$$

    Exact for any two sample sizes.

    Args:
        first: Samples of one distribution.
        second: Samples of the other.
        order: The power p, 1 or more.
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

    Values outside the limits are counted in two bins of their own. For n independent
    values against the exact density it is about $\sum_b \sqrt{p_b / 2 \pi n}$, not
    zero: compare it with exact samples of the same number.

    Args:
        first: Values of one sample, such as the pair distances, in any shape.
        second: Values of the other.
        limits: The range of the bins.
        num_bins: The number of bins in between, of equal width.

    Raises:
        ValueError: If the limits are not finite, or the lower one is not first.
    """
    check_integers("`total_variation`", num_bins=num_bins)
    needed = _BYTES * num_bins
    check_made("`total_variation` in so many bins", needed, "take a smaller `num_bins`")
    if not -math.inf < limits[0] < limits[1] < math.inf:
        raise ValueError(
            "`total_variation` needs `limits`, two finite numbers, the lower first, "
            f"but got {limits}. What is outside has bins of its own."
        )
    edges = jnp.linspace(*limits, num_bins + 1)

    def histogram(values):
        bins = jnp.searchsorted(edges.astype(values.dtype), values.ravel(), "right")
        counts = jnp.bincount(bins, length=num_bins + 2)
        return counts.astype(values.dtype) / values.size

    found = jnp.sum(jnp.abs(histogram(first) - histogram(second))) / 2
    return nan_unless(are_numbers(first, second), found)


@eqx.filter_jit
def _mean_distance(x: Float[Array, "n dim"], y: Float[Array, "m dim"]) -> Scalar:
    def to_all(point):
        squared = jnp.sum((point[None] - y) ** 2, axis=1)
        return jnp.mean(jnp.sqrt(squared))

    return jnp.mean(jax.lax.map(to_all, x, batch_size=256))
