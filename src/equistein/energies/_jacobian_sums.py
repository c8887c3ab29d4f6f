"""Sums over points of the Jacobians of features: both sides of normal equations."""

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from equistein._products import einsum
from equistein._sharding import shard_rows
from equistein.features import AbstractFeatures

_NUMBERS = 2**23  # of the Jacobians of a block
_MOST_ROWS = 1_024  # of a block


@dataclasses.dataclass
class Rows:
    """Points with what is known of them, in double precision.

    Attributes:
        points: The points, on the group's subspace.
        forces: Forces / kT, NaN where unknown, or None.
        weights: The weight of each point.
        copies: How many rows in succession come from one point.
    """

    points: np.ndarray
    forces: np.ndarray | None
    weights: np.ndarray
    copies: int = 1

    def __getitem__(self, rows: Any) -> "Rows":
        forces = None if self.forces is None else self.forces[rows]
        return Rows(self.points[rows], forces, self.weights[rows], self.copies)

    def __len__(self) -> int:
        return len(self.points)


Blocks = Callable[[], Iterable[tuple[int, Rows]]]
"""Gives blocks of rows, each with the number of its fold, again each time."""


class Equations(eqx.Module):
    r"""Sums over points, of score matching and of force matching.

    Attributes:
        matrix, vector, weight: Of $J J^\top$, of $\Delta F - J \nabla E_0$, of 1.
        force_matrix, force_vector, force_weight: Of $J J^\top$, of $-J (f + \nabla
            E_0)$, of 1, where forces are known.
        square: Of $|f + \nabla E_0|^2$ there.
        count: The number of points with a weight.
    """

    matrix: Any
    vector: Any
    weight: Any
    force_matrix: Any
    force_vector: Any
    force_weight: Any
    square: Any
    count: Any

    def combined(self, shares: tuple[float, float]) -> tuple[np.ndarray, np.ndarray]:
        """Return the matrix and the vector of a weighted sum of both."""
        matrix = shares[0] * self.matrix + shares[1] * self.force_matrix
        return matrix, shares[0] * self.vector + shares[1] * self.force_vector

    def force_variance(self, c: np.ndarray, size: int) -> float:
        """Return the mean squared error of a coordinate of the forces, or NaN."""
        left = self.square + c @ self.force_matrix @ c - 2 * c @ self.force_vector
        num = float(self.force_weight) * size
        return max(float(left) / num, 1e-30) if num else float("nan")


def sum_folds(folds: Sequence[Equations]) -> Equations:
    return jax.tree.map(lambda *parts: np.sum(parts, axis=0), *folds)


def accumulate(
    function: Callable[..., Any],
    features: AbstractFeatures,
    gradients: Callable[[np.ndarray], np.ndarray],
    blocks: Blocks,
    mesh: Mesh | None,
    *more: Any,
) -> dict[int, Any]:
    """Return `sum_equations` or `sum_scatter`, summed over the rows of each fold.

    In double precision; `gradients` are of the known energy.
    """
    total: dict[int, Any] = {}
    for fold, rows in blocks():
        each = features.row_size(rows.points.shape[1:])
        most = min(_NUMBERS // each, _MOST_ROWS, 2 * len(rows))
        most = rows.copies * (1 << max(most // rows.copies, 1).bit_length() - 1)
        most = most if mesh is None else most * mesh.size  # copies stay together
        for begin in range(0, len(rows), most):
            part = rows[np.arange(begin, begin + most) % len(rows)]
            part.weights[len(rows) - begin :] = 0  # they fill the block
            known = gradients(part.points)
            # Where all forces are known one product will do.
            complete = part.forces is None or bool(np.isfinite(part.forces).all())
            arrays = part.points, part.weights, part.forces, known
            kind = rows.copies, complete
            with jax.enable_x64(True):
                found = function(features, arrays, kind, mesh, *more)
                found = jax.tree.map(np.asarray, found)
            if fold in total:
                found = jax.tree.map(np.add, total[fold], found)
            total[fold] = found
    return total


@eqx.filter_jit
def sum_equations(features, arrays, kind, mesh) -> Equations:
    """Return the sums over some rows."""
    weights, forces = arrays[1], arrays[2]
    jac, vector, force_vector, is_known, square = _rows(features, arrays, mesh)
    both = weights * is_known
    matrix = einsum("bmd,bnd->mn", jac * weights[:, None, None], jac)
    of_forces = jnp.zeros_like(matrix) if forces is None else matrix
    if not kind[1]:
        of_forces = einsum("bmd,bnd->mn", jac * both[:, None, None], jac)
    return Equations(
        matrix, weights @ vector, jnp.sum(weights), of_forces, both @ force_vector,
        jnp.sum(both), both @ square, jnp.sum((weights > 0).astype(float)) / kind[0],
    )  # fmt: skip


@eqx.filter_jit
def sum_scatter(features, arrays, kind, mesh, c, shares):
    """Return the sum of $g g^T$, g each point's part of the gradient at c."""
    jac, vector, force_vector, is_known, _ = _rows(features, arrays, mesh)
    of_data, of_forces = shares[0] * arrays[1], shares[1] * arrays[1] * is_known
    parts = einsum("bmd,bd->bm", jac, einsum("bmd,m->bd", jac, c))
    parts = (of_data + of_forces)[:, None] * parts - of_data[:, None] * vector
    parts = parts - of_forces[:, None] * force_vector
    parts = jnp.sum(parts.reshape(-1, kind[0], parts.shape[1]), axis=1)
    return einsum("im,in->mn", parts, parts)


def _rows(features, arrays, mesh):
    """Return of each row J, both right sides, whether forces are known, and squares."""
    points, _, forces, known = arrays if mesh is None else shard_rows(arrays, mesh)
    jac, laplacian = jax.vmap(features.derivatives)(points)
    flat = lambda rows: rows.reshape(len(rows), -1)
    vector = laplacian - einsum("bmd,bd->bm", jac, flat(known))
    if forces is None:
        zeros = jnp.zeros(len(points))
        return jac, vector, jnp.zeros_like(vector), zeros, zeros
    is_known = jnp.all(jnp.isfinite(flat(forces)), axis=1)
    gaps = jnp.where(is_known[:, None], flat(forces + known), 0)
    force_vector = -einsum("bmd,bd->bm", jac, gaps)
    return jac, vector, force_vector, is_known.astype(float), jnp.sum(gaps**2, axis=1)
