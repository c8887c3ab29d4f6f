"""Distances between two sets of samples."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from equistein._types import Scalar


def energy_distance(
    first: Float[Array, "n *shape"], second: Float[Array, "m *shape"]
) -> Scalar:
    r"""The energy distance $2 E|X - Y| - E|X - X'| - E|Y - Y'|$, in units of length.

    The distance of the two empirical laws: the means run over all pairs, so it is
    never negative and zero only for equal sets; for independent samples it has a floor
    of order $1/n$. Compare it with exact samples of the same number. Memory is O(n).

    Args:
        first: Samples of one law, stacked on axis 0.
        second: Samples of the other.

    References:
        Székely and Rizzo (2013), Energy statistics.
    """
    x, y = (z.reshape(len(z), -1) for z in (first, second))
    return 2 * _mean_distance(x, y) - _mean_distance(x, x) - _mean_distance(y, y)


def wasserstein_1d(
    first: Float[Array, " n"], second: Float[Array, " m"], order: int = 1
) -> Scalar:
    r"""The Wasserstein distance of two samples on the line.

    $$W_p = \Bigl(\int_0^1 |F^{-1}(u) - G^{-1}(u)|^p\, du\Bigr)^{1/p}$$

    Exact for any two sample sizes.

    Args:
        first: Samples of one law.
        second: Samples of the other.
        order: The power p, 1 or more.
    """
    x, y = jnp.sort(first), jnp.sort(second)
    n, m = len(x), len(y)
    # Levels in units of 1 / nm: whole numbers, which are exact.
    levels = np.sort(np.concatenate([m * np.arange(n), n * np.arange(m + 1)]))
    middle = (levels[1:] + levels[:-1]) // 2
    gaps = jnp.abs(x[middle // m] - y[middle // n]) ** order
    weights = jnp.asarray(np.diff(levels) / (n * m), x.dtype)
    return jnp.sum(gaps * weights) ** (1 / order)


def _mean_distance(x: Float[Array, "n dim"], y: Float[Array, "m dim"]) -> Scalar:
    def to_all(point):
        squared = jnp.sum((point[None] - y) ** 2, axis=1)
        return jnp.mean(jnp.sqrt(squared))

    return jnp.mean(jax.lax.map(to_all, x, batch_size=256))
