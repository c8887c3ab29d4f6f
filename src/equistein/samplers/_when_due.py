"""What is computed at some steps only, also where many runs go together."""

from collections.abc import Callable
from typing import TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, PyTree

Value = TypeVar("Value", bound=PyTree)


def when_due(
    due: Bool[Array, ""],
    compute: Callable[..., Value],
    otherwise: Value,
    *operands: PyTree,
) -> Value:
    """Return `compute(*operands)` where it is due, and else what there was.

    `lax.cond` does that too, but under `vmap` it computes at every step and chooses
    afterwards. Here nothing is computed while it is due in none of the runs.

    Args:
        due: Whether to compute.
        compute: A function of the operands alone; it holds no array that is traced.
        otherwise: The value where it is not due, a tree of arrays.
        operands: Trees of arrays and of what else the function needs.
    """
    arrays, static = eqx.partition(operands, eqx.is_array)
    return _chosen(
        due, lambda *arrays: compute(*eqx.combine(arrays, static)), otherwise, arrays
    )


def _chosen(
    due: Bool[Array, ""],
    compute: Callable[..., Value],
    otherwise: Value,
    operands: tuple[PyTree, ...],
) -> Value:
    @jax.custom_batching.custom_vmap
    def chosen(due, otherwise, *operands):
        return jax.lax.cond(due, compute, lambda *_: otherwise, *operands)

    @chosen.def_vmap
    def of_many(size, batched, due, otherwise, *operands):
        del size
        axes = jax.tree.map(lambda each: 0 if each else None, batched)

        def each(due, value, *operands):
            new = compute(*operands)
            return jax.tree.map(lambda n, old: jnp.where(due, n, old), new, value)

        kept = jax.vmap(lambda due, value, *_: value, in_axes=axes)
        value = _chosen(
            jnp.any(due), jax.vmap(each, in_axes=axes),
            kept(due, otherwise, *operands), (due, otherwise, *operands),
        )  # fmt: skip
        return value, jax.tree.map(lambda _: True, value)

    return chosen(due, otherwise, *operands)
