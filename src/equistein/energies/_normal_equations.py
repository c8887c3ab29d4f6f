"""The normal equations of a linear energy: sums over points, and their solution."""

import dataclasses
import functools
import itertools
import math
import warnings
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

_RIDGES = 10.0 ** np.arange(-12.0, 1.0, 0.5)
_RIDGE = 1e-8  # of a single fold
_FEW = 500  # features
_SEEN = 1e-8  # of the diagonal, below which the other folds do not know a feature
_CONSTANT = 1e-12  # of the largest diagonal, below which a feature is constant
_RATIO = 1.4  # of forces to those that the points imply, beyond which it warns
_STRANGE = 10  # median deviations of the best loss of a fold, beyond which it is
_UNSURE = 0.2  # of the square of the latter, by their errors
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
        if not self.force_weight:
            return float("nan")
        left = self.square + c @ self.force_matrix @ c - 2 * c @ self.force_vector
        return max(float(left) / float(self.force_weight) / size, 1e-30)


def sum_folds(folds: Sequence[Equations]) -> Equations:
    return jax.tree.map(lambda *parts: np.sum(parts, axis=0), *folds)


def accumulate(
    function: Callable[..., Any], features: AbstractFeatures,
    gradients: Callable[[np.ndarray], np.ndarray], blocks: Blocks, mesh: Mesh | None,
    *more: Any,
) -> dict[int, Any]:  # fmt: skip
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
    of_forces = jnp.zeros(()) if forces is None else matrix
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


class LinearSolution(eqx.Module):
    r"""The coefficients of one class.

    $M c = b$, with $M = H + \lambda P\, \mathrm{diag}\, H$ and penalties P of features.

    Attributes:
        coefficients: $c$; 0 where a feature is constant, and as held where unbounded.
        ridge: $\lambda$.
        num_effective: The effective number of parameters, $\mathrm{tr}\, M^{-1} H$.
        used: Which features are neither constant nor held.
        covariance: Of $c$: $M^{-1} S M^{-1}$, with S the squares.
        shares: The weights of score matching and of force matching.
        force_error: The root mean square error of a coordinate of the given forces.
        folds, squares: Sums over the points so far, to which `update` adds.
    """

    coefficients: np.ndarray
    ridge: float
    num_effective: float
    used: np.ndarray
    covariance: Any = None
    shares: tuple[float, float] = (1.0, 0.0)
    force_error: float = float("nan")
    folds: tuple[Equations, ...] = ()
    squares: Any = 0.0

    def errors(self, features: np.ndarray) -> np.ndarray:
        r"""Return the standard error of $c \cdot v$ for each row v."""
        squares = np.einsum("im,mn,in->i", features, self.covariance, features)
        return np.sqrt(np.maximum(squares, 0))


def solve_linear(
    energy: Any,
    blocks: Blocks,
    *,
    ridge: float | None = None,
    shares: tuple[float, float] | None = None,
    before: LinearSolution | None = None,
    mesh: Mesh | None = None,
) -> LinearSolution:
    """Return the coefficients of a `LinearEnergy` that fit some points best.

    By default the ridge is the one by which folds predict each other best, and `shares`
    are from the scatter of both objectives. `before` is of earlier points.
    """
    features, base = energy.features, energy.base
    known = np.zeros_like if base is None else functools.partial(_gradients, base)
    parts = features, known, blocks, mesh
    sums = accumulate(sum_equations, *parts)
    folds, squares = [sums[fold] for fold in sorted(sums)], 0.0
    if before is not None:
        pairs = itertools.zip_longest(before.folds, folds)
        folds = [sum_folds([p for p in pair if p is not None]) for pair in pairs]
        shares, squares = before.shares, before.squares
    shape = next(iter(blocks()))[1].points.shape[1:]
    size = math.prod(shape)
    total = sum_folds(folds)
    scatter = lambda *at: sum(accumulate(sum_scatter, *parts, *at).values())
    if shares is None:
        shares = 1.0, 0.0
        if total.force_weight:
            shares = _shares(folds, features, shape, scatter)
    found, inverse = solve(folds, shares, ridge, features, shape)
    num, numbers = int(found.used.sum()), float(total.count) * size
    if numbers < num or not num:
        raise ValueError(
            f"`fit_linear` has {numbers:.0f} coordinates in all, fewer than the {num} "
            f"of {len(found.used)} features that vary: give more points, or fewer "
            "features."
        )
    squares = squares + scatter(found.coefficients, shares)
    if num > _FEW and len(folds) > 1:  # the others are not held out
        folds = [folds[0], sum_folds(folds[1:])]
    return dataclasses.replace(
        found, covariance=inverse @ squares @ inverse, shares=shares,
        force_error=total.force_variance(found.coefficients, size) ** 0.5,
        folds=tuple(folds), squares=squares,
    )  # fmt: skip


def _gradients(base: Any, points: np.ndarray) -> np.ndarray:
    gradients = eqx.filter_jit(eqx.filter_vmap(eqx.filter_grad(base)))
    return np.asarray(gradients(jnp.asarray(points, float)), np.float64)


def _shares(
    folds: Sequence[Equations], features: Any, shape: tuple[int, ...], scatter: Any
) -> tuple[float, float]:
    """Return the weights of both objectives: the inverse of what each scatters by."""
    total, size = sum_folds(folds), math.prod(shape)
    by_forces, _ = solve(folds, (0.0, 1.0), None, features, shape)
    by_points, inverse = solve(folds, (1.0, 0.0), None, features, shape)
    # Few forces are fitted too well: then what the points say is their error.
    few = float(total.force_weight) * size < 2 * by_forces.used.sum()
    c = (by_points if few else by_forces).coefficients
    spread = scatter(c, (1.0, 0.0))
    _check_unit(total, by_points.coefficients, inverse @ spread @ inverse)
    variance = np.sum(inverse * spread) / by_points.used.sum()
    return total.force_variance(c, size) / float(variance), 1.0


def _check_unit(total: Equations, c: np.ndarray, covariance: np.ndarray) -> None:
    """Warn if forces are a multiple of those that the points alone imply."""
    implied = c @ total.force_matrix @ c
    by_error = np.sum(total.force_matrix * covariance)
    if by_error >= _UNSURE * implied:
        return
    ratio = float(c @ total.force_vector) / float(implied - by_error)
    if not 1 / _RATIO < ratio < _RATIO:
        warnings.warn(
            f"`forces` are {ratio:.3g} times those that the points imply, -grad U / kT "
            "in kT over the unit of length. Another unit, sign or temperature?",
            stacklevel=5,
        )


def solve(
    folds: Sequence[Equations], shares: tuple[float, float], ridge: float | None,
    features: Any, shape: tuple[int, ...],
) -> tuple[LinearSolution, np.ndarray]:  # fmt: skip
    """Solve the equations, with unbounded features held; also return $M^{-1}$."""
    matrix, vector = sum_folds(folds).combined(shares)
    diagonal, penalties = np.diag(matrix), features.penalties(shape)
    used = diagonal > _CONSTANT * max(diagonal.max(), 1e-300)
    if ridge is None and len(folds) > 1:
        parts = [fold.combined(shares) for fold in folds]
        ridge = _best_ridge(matrix, parts, used, penalties)
    ridge = _RIDGE if ridge is None else float(ridge)
    bounded, held = features.held_coefficients(shape), np.zeros(len(matrix))
    while True:
        values, axes = _eigen(matrix, used, penalties)
        inverse = (axes / (values + ridge)) @ axes.T
        found = held + inverse @ (vector - matrix @ held)
        worse = used & features.unbounded(found, shape)
        if not worse.any():
            num = float(np.sum(values / (values + ridge)))
            return LinearSolution(found, ridge, num, used), inverse
        used, held = used & ~worse, np.where(worse, bounded, held)


def _eigen(
    matrix: np.ndarray, used: np.ndarray, penalties: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the eigenvalues of the scaled matrix, and its axes in coefficients."""
    part = matrix[np.ix_(used, used)]
    scale = 1 / np.sqrt(np.diag(part) * penalties[used])
    values, vectors = np.linalg.eigh(scale[:, None] * part * scale)
    axes = np.zeros((len(matrix), len(values)))
    axes[used] = scale[:, None] * vectors
    return np.maximum(values, 0), axes


def _best_ridge(
    matrix: np.ndarray, folds: Sequence[tuple[np.ndarray, np.ndarray]],
    used: np.ndarray, penalties: np.ndarray,
) -> float:  # fmt: skip
    """Return the largest ridge by which folds predict each other about best."""
    # It is worse than the best by less than half a standard error over the folds: the
    # data's gaps are smooth. With many features one fold is enough, as that is slow.
    losses = []
    for i, (part, slope) in enumerate(folds if used.sum() <= _FEW else folds[:1]):
        rest = [
            np.sum(p, axis=0) for p in zip(*folds[:i], *folds[i + 1 :], strict=True)
        ]
        # What this fold alone has seen is not in the others.
        seen = used & (np.diag(rest[0]) > _SEEN * np.diag(matrix))
        if not seen.any():
            continue
        values, axes = _eigen(rest[0], seen, penalties)
        curve, along = axes.T @ part @ axes, axes.T @ rest[1]
        slope = axes.T @ slope
        places = [along / (values + ridge) for ridge in _RIDGES]
        losses.append([place @ curve @ place / 2 - slope @ place for place in places])
    if not losses:
        return _RIDGE
    worse = np.array(losses)
    # A fold of strange points is one that no ridge predicts.
    best = worse.min(axis=1) - np.median(worse.min(axis=1))
    if len(best) > 4 and best.max() > _STRANGE * np.median(np.abs(best)):
        worse = np.delete(worse, np.argmax(best), axis=0)
    worse = worse - worse[:, [np.argmin(worse.sum(axis=0))]]
    error = np.std(worse, axis=0) * len(losses) ** 0.5 / 2
    return float(_RIDGES[np.flatnonzero(worse.sum(axis=0) <= error)[-1]])
