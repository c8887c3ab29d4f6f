"""What is computed at some steps only, also where many runs go together."""

from collections.abc import Callable
from typing import TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, PyTree

Value = TypeVar("Value", bound=PyTree)


def when_due(
    due: Bool[Array, ""], compute: Callable[[], Value], otherwise: Value
) -> Value:
    """Return `compute()` where it is due, and else what there was.

    `lax.cond` does that too, but under `vmap` it computes at every step and chooses
    afterwards. Here nothing is computed while it is due in none of the runs.

    Args:
        due: Whether to compute.
        compute: What gives the new value.
        otherwise: The value where it is not due, a tree of arrays.
    """

    def chosen():
        pick = lambda new, old: jnp.where(due, new, old)
        return jax.tree.map(pick, compute(), otherwise)

    return jax.lax.cond(_in_any_run(due), chosen, lambda: otherwise)


@jax.custom_batching.custom_vmap
def _in_any_run(due: Bool[Array, ""]) -> Bool[Array, ""]:
    """Return whether it is due, or in any of the runs, then one value for all."""
    return due


@_in_any_run.def_vmap
def _in_any_of_many(size, batched, due):
    del size
    (is_batched,) = batched
    return _in_any_run(jnp.any(due, axis=0) if is_batched else due), False
