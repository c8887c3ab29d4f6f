"""Points that are trees of arrays, as flat points, which samplers move."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, PyTree

from equistein._types import Point, Scalar


class TreeDensity(eqx.Module):
    """The log density of a tree, as one of a flat point; equal ones compile once."""

    log_density: Callable[[PyTree], Scalar]
    unflatten: Callable[[Point], PyTree] = eqx.field(static=True)

    def __call__(self, point: Point) -> Scalar:
        return self.log_density(self.unflatten(point))


def is_tree(particles: Any) -> bool:
    """Return whether particles are a tree of arrays, and not one or a list of lists."""
    leaves = jax.tree.leaves(particles)
    arrays = all(isinstance(x, jax.Array | np.ndarray) and x.ndim for x in leaves)
    return bool(leaves) and arrays and not isinstance(particles, jax.Array | np.ndarray)


def flatten_trees(
    log_density: Callable[[PyTree], Scalar], trees: PyTree, num_axes: int
) -> tuple[TreeDensity, Float[Array, "*batch dim"]]:
    """Return a density of flat points, and the points of trees stacked on some axes."""
    leaves = jax.tree.leaves(trees)
    batches = {leaf.shape[:num_axes] for leaf in leaves}
    kinds = sorted({str(leaf.dtype) for leaf in leaves})
    floats = all(jnp.issubdtype(leaf.dtype, jnp.floating) for leaf in leaves)
    if len(batches) > 1 or not floats:
        raise ValueError(
            "`particles` that are a tree need floating-point arrays, stacked on axis 0 "
            f"alike, but have shapes {[leaf.shape for leaf in leaves]} of "
            f"{', '.join(kinds)}."
        )
    batch = batches.pop()
    dtype = leaves[0].dtype if len(kinds) == 1 else jnp.dtype(float)
    flat = [jnp.asarray(x, dtype).reshape(*batch, -1) for x in leaves]
    zeros = lambda leaf: jnp.zeros(leaf.shape[num_axes:], dtype)
    _, unflatten = ravel_pytree(jax.tree.map(zeros, trees))
    return TreeDensity(log_density, unflatten), jnp.concatenate(flat, axis=-1)
