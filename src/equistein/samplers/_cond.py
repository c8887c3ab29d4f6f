"""A conditional that `vmap` does not turn into computing both branches."""

from collections.abc import Callable
from typing import TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, PyTree

Value = TypeVar("Value", bound=PyTree)


def cond_if_any(
    condition: Bool[Array, ""], compute: Callable[[], Value], otherwise: Value
) -> Value:
    """Return `compute()` where the condition holds, and `otherwise` elsewhere.

    Under `vmap`, `lax.cond` computes both branches in every step. Here nothing is
    computed while the condition holds in none of the runs.
    """

    def selected():
        pick = lambda new, old: jnp.where(condition, new, old)
        return jax.tree.map(pick, compute(), otherwise)

    return jax.lax.cond(_any_run(condition), selected, lambda: otherwise)


@jax.custom_batching.custom_vmap
def _any_run(condition: Bool[Array, ""]) -> Bool[Array, ""]:
    """Return the condition; of vmapped runs, one value: whether it holds in any."""
    return condition


@_any_run.def_vmap
def _any_of_many(size, batched, condition):
    del size
    (is_batched,) = batched
    combined = jnp.any(condition, axis=0) if is_batched else condition
    return _any_run(combined), False
