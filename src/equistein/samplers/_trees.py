"""Points that are trees of arrays, as flat points, which samplers move."""

import math
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from equistein._types import Point, Scalar


class TreeDensity(eqx.Module):
    """The log density of a tree, as one of a flat point; equal ones compile once."""

    log_density: Callable[[PyTree], Scalar]
    structure: Any = eqx.field(static=True)
    shapes: tuple[tuple[int, ...], ...] = eqx.field(static=True)

    def __call__(self, point: Point) -> Scalar:
        return self.log_density(self.unflatten(point))

    def unflatten(self, points: Float[Array, "*batch dim"]) -> PyTree:
        """Return the trees of flat points."""
        sizes = [math.prod(shape) for shape in self.shapes]
        parts = jnp.split(points, np.cumsum(sizes)[:-1], axis=-1)
        batch = points.shape[:-1]
        leaves = [
            p.reshape(*batch, *s) for p, s in zip(parts, self.shapes, strict=True)
        ]
        return jax.tree.unflatten(self.structure, leaves)


def is_tree(particles: Any) -> bool:
    """Return whether particles are a tree of arrays, and not one or a list of lists."""
    leaves = jax.tree.leaves(particles)
    arrays = all(isinstance(x, jax.Array | np.ndarray) and x.ndim for x in leaves)
    return bool(leaves) and arrays and not isinstance(particles, jax.Array | np.ndarray)


def flatten_trees(
    log_density: Callable[[PyTree], Scalar], trees: PyTree, num_axes: int
) -> tuple[TreeDensity, Float[Array, "*batch dim"]]:
    """Return a density of flat points, and the points of trees stacked on some axes."""
    leaves, structure = jax.tree.flatten(trees)
    batches = {leaf.shape[:num_axes] for leaf in leaves}
    kinds = {str(leaf.dtype) for leaf in leaves}
    if len(batches) > 1 or not all(
        jnp.issubdtype(x.dtype, jnp.floating) for x in leaves
    ):
        raise ValueError(
            "`particles` that are a tree need floating-point arrays, stacked on axis 0 "
            f"alike, but have shapes {[leaf.shape for leaf in leaves]} of "
            f"{', '.join(sorted(kinds))}."
        )
    batch = batches.pop()
    dtype = jnp.result_type(*leaves) if len(kinds) == 1 else jnp.dtype(float)
    flat = [jnp.asarray(x, dtype).reshape(*batch, -1) for x in leaves]
    shapes = tuple(x.shape[num_axes:] for x in leaves)
    density = TreeDensity(log_density, structure, shapes)
    return density, jnp.concatenate(flat, axis=-1)
