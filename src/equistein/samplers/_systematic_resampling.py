"""Systematic resampling: particles chosen by their weights."""

import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, Int

from equistein._gate import finite_gate
from equistein._types import Key


@finite_gate
def systematic_resampling(
    key: Key, weights: Float[Array, " particle"]
) -> Int[Array, " particle"]:
    """Choose as many particles by their weights: equal steps from one random start.

    Each is chosen as often as its weight says, rounded down or up.
    """
    num = len(weights)
    ticks = jnp.arange(num, dtype=weights.dtype) + jr.uniform(key, (), weights.dtype)
    edges = jnp.cumsum(weights)
    chosen = jnp.searchsorted(edges / edges[-1], ticks / num)
    return jnp.minimum(chosen, num - 1).astype(int)
