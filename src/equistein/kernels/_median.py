"""The median of distances, by a selection."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from equistein._types import Scalar


def middle_pairs(
    squared_distances: Float[Array, "n n"],
) -> tuple[Scalar, Scalar]:
    """Return the two middle ones of the squared distances between different points.

    They are found bit by bit, by counting: the bits of numbers that are not negative
    are in the order of the numbers. A sort takes several times as long.
    """
    num = len(squared_distances)
    pairs = num * (num - 1) // 2
    above = jnp.triu(jnp.ones((num, num), bool), k=1)
    values = jnp.where(above, squared_distances, jnp.inf)
    lower = _smallest(values, (pairs - 1) // 2)
    seen = values <= lower
    upper = jnp.min(jnp.where(seen, jnp.inf, values))
    return lower, jnp.where(jnp.sum(seen) > pairs // 2, lower, upper)


def _smallest(values: Float[Array, "n n"], rank: int) -> Scalar:
    """Return the value that so many are before, of numbers that are not negative."""
    width = values.dtype.itemsize * 8
    words = jnp.dtype(f"int{width}")
    bits = jax.lax.bitcast_convert_type(values, words)

    def narrowed(place: Int[Array, ""], found: Int[Array, ""]) -> Int[Array, ""]:
        # The largest number with fewer than `rank + 1` below it has this bit or not.
        tried = found | (jnp.ones((), words) << (width - 2 - place).astype(words))
        return jnp.where(jnp.sum(bits < tried) <= rank, tried, found)

    found = jax.lax.fori_loop(0, width - 1, narrowed, jnp.zeros((), words))
    return jax.lax.bitcast_convert_type(found, values.dtype)
