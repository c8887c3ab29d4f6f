"""Sums over all pairs, streamed over blocks of targets."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

_MAX_BLOCK = 2**20  # numbers in the Gram matrix of one block: 4 MiB in float32


def map_blocks(
    block: Callable[[Float[Array, "block k"]], Float[Array, "block m"]],
    targets: Float[Array, "target k"],
    num_sources: int,
) -> Float[Array, "target m"]:
    """Return `block(targets)`, computed for some rows at a time.

    The memory in use stays O(n) where the whole Gram matrix would be O(n^2), and a
    block's Gram matrix stays in the processor's cache between being made and used.
    """
    num, width = targets.shape
    rows = max(_MAX_BLOCK // num_sources, 8)
    if num <= rows:
        return block(targets)
    num_blocks = -(-num // rows)
    rows = -(-num // num_blocks)
    padded = jnp.concatenate(
        [targets, jnp.zeros((num_blocks * rows - num, width), targets.dtype)]
    )
    sums = jax.lax.map(block, padded.reshape(num_blocks, rows, width))
    return sums.reshape(num_blocks * rows, -1)[:num]
