"""Preconditioners: the shape of a density, learned from a population of points."""

import math
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Bool, Float

from equistein._arrays import on_device
from equistein._check_arguments import accept_integer_key, check_arguments
from equistein._numbers import check_integers
from equistein._products import matmul
from equistein._types import Key, Particles, Point, Scalar

_DENSE = 100  # dimensions, at most, of a covariance with correlations
_LEAST, _MOST = 1e-4, 1e4  # that a variance changes by in one update
_USUAL = 4.0  # squared distance a dimension, at most, that has all its weight
_NARROW = 1e-4  # width, at least, of the widest
_ROUNDED = 1e-4  # of a projection, in single precision


class PointSums(eqx.Module):
    """Weighted sums over points, in the coordinates of a preconditioner.

    Attributes:
        squares: The sums of their products; of their squares where it is diagonal.
    """

    count: Scalar
    weight: Scalar
    total: Float[Array, " dim"]
    squares: Float[Array, "dim *dim"]

    def __add__(self, other: "PointSums") -> "PointSums":
        return jax.tree.map(jnp.add, self, other)

    def __mul__(self, factor: float | Scalar) -> "PointSums":
        return jax.tree.map(lambda leaf: leaf * factor, self)


@check_arguments
class Preconditioner(eqx.Module):
    r"""The center and the covariance of a density, as the affine map $x = c + F z$.

    The covariance is $F F^\top$, so that the density of z has about unit covariance.
    F is a matrix, or of more than 100 dimensions diagonal. Points have one axis.

    Attributes:
        factor: The factor $F$, or its diagonal.
        inverse: The inverse of F, or its diagonal.
        log_det: The logarithm of the determinant of F.
        growth: By how much its columns are wider than before the last update.
    """

    center: Point
    factor: Float[Array, "dim *dim"]
    inverse: Float[Array, "free *free"]
    log_det: Scalar
    growth: Float[Array, " column"]

    @classmethod
    def unit(cls, center: Point) -> "Preconditioner":
        """Return the one that moves points by a center and leaves their scale."""
        one = jnp.ones_like(center)
        factor = jnp.diag(one) if center.size <= _DENSE else one
        return cls(center, factor, factor, jnp.zeros((), center.dtype), one)

    @classmethod
    def by_width(cls, points: Particles) -> "Preconditioner":
        """Return the one of some points that has no correlations yet."""
        if points.ndim != 2:
            raise ValueError(
                "Preconditioner needs `points` of shape (n, dim), but got "
                f"{points.shape}. Flatten each point."
            )
        weights = jnp.ones(len(points), points.dtype)
        center = jnp.sum(weights[:, None] * points, axis=0) / jnp.sum(weights)
        gaps = points - center[None]
        widths = jnp.sqrt(matmul(weights, gaps**2) / jnp.sum(weights))
        most = jnp.max(widths)
        widths = jnp.maximum(widths, _NARROW * jnp.where(most > 0, most, 1))
        return cls.unit(center).scaled(widths)

    @classmethod
    def of_subspace(
        cls, project: Callable[[Point], Point], shape: tuple[int, ...]
    ) -> "Preconditioner":
        """Return that of coordinates in an orthonormal basis of a subspace.

        Raises `ValueError` if the projection onto it is not linear and orthogonal.
        """
        size = math.prod(shape)
        zero, ones = np.zeros(()), np.ones(size)
        # The subspace's dimension is a shape, so the basis cannot be traced.
        with jax.ensure_compile_time_eval():
            matrix = np.asarray(jax.jacfwd(project)(jnp.zeros(shape)), float)
            probe = np.linspace(-1.0, 2.0, size)
            image = np.ravel(project(jnp.asarray(probe.reshape(shape), float)))
        matrix = matrix.reshape(size, size)
        values, vectors = np.linalg.eigh(matrix)
        basis = vectors[:, values > 0.5]
        gaps = matrix - basis @ basis.T, image - matrix @ probe
        if not basis.shape[1] or not all(np.max(np.abs(g)) < _ROUNDED for g in gaps):
            raise ValueError(
                "`project` must be a linear orthogonal projection, as the one that "
                f"moves the center of mass to the origin, but got {project!r}."
            )
        parts = 0 * ones, basis, basis.T, zero, ones[: basis.shape[1]]
        return cls(*map(on_device, parts))

    def push(self, z: Float[Array, " dim"]) -> Point:
        """Return $F z$, a difference of points."""
        return self._times(self.factor, z)

    def pull(self, score: Point) -> Float[Array, " dim"]:
        r"""Return $F^\top s$, the score of z."""
        return self._times(score, self.factor)

    def pull_back(self, score: Float[Array, " dim"]) -> Point:
        r"""Return $F^{-\top} s$, the score of a point, from that of z."""
        return self._times(score, self.inverse)

    def whiten(self, point: Point) -> Float[Array, " dim"]:
        """Return the coordinates z of a point."""
        return self._times(self.inverse, point - self.center)

    def unwhiten(self, z: Float[Array, " dim"]) -> Point:
        """Return the point $c + F z$ of coordinates z."""
        return self.center + self.push(z)

    def log_density(self, point: Point) -> Scalar:
        r"""Return that of a point under the normal $\mathcal N(c, F F^\top)$."""
        constant = 0.5 * point.size * math.log(2 * math.pi) + self.log_det
        return -0.5 * jnp.sum(self.whiten(point) ** 2) - constant

    @accept_integer_key
    def sample(self, key: Key, num: int) -> Particles:
        """Draw points of that normal density."""
        check_integers("`sample`", num=num)
        z = jr.normal(key, (num, self.center.size), self.center.dtype)
        return jax.vmap(self.unwhiten)(z)

    @property
    def covariance(self) -> Float[Array, "dim dim"]:
        r"""The matrix $F F^\top$."""
        dense = self.factor if self.factor.ndim > 1 else jnp.diag(self.factor)
        return matmul(dense, dense.T)

    def sums(
        self, points: Particles, weights: Float[Array, " particle"] | None = None
    ) -> PointSums:
        """Return the sums over some points, from which `updated` learns.

        Points more than twice as far as is usual weigh less, by the squared distance,
        so that a few in a heavy tail do not make the covariance.
        """
        z = jax.vmap(self.whiten)(points)
        far = jnp.sum(z**2, axis=1) / (_USUAL * z.shape[1])
        w = (1 if weights is None else weights) / jnp.maximum(far, 1)
        if self.factor.ndim > 1:
            squares = matmul((w[:, None] * z).T, z)
        else:
            squares = matmul(w, z**2)
        count = jnp.asarray(len(z), z.dtype)
        return PointSums(count, jnp.sum(w), matmul(w, z), squares)

    def updated(
        self, sums: PointSums, effective: int | float | Scalar
    ) -> "Preconditioner":
        r"""Return the preconditioner of the points that were summed.

        Their covariance C in these coordinates becomes
        $(n C + d\, \mathrm{diag}\, C + I) / (n + d + 1)$, so few points change little.
        They are worth n independent ones, the `effective` number.
        """
        mean = sums.total / jnp.maximum(sums.weight, 1e-6)
        square = sums.squares / jnp.maximum(sums.weight, 1e-6)
        dim, size = len(mean), jnp.asarray(effective, mean.dtype)
        if self.factor.ndim > 1:
            found = square - mean[:, None] * mean[None]
            found = size * found + dim * jnp.diag(jnp.diag(found))
            found = found + jnp.eye(dim, dtype=found.dtype)
        else:
            found = (size + dim) * (square - mean**2) + 1
        found = found / (size + dim + 1)
        usable = jnp.all(jnp.isfinite(found)) & (sums.weight > 0)
        mean = jnp.where(usable, mean, 0)
        center = self.center + self.push(mean)
        if self.factor.ndim == 1:
            variances = jnp.where(usable, found, 1)
            spread = jnp.sqrt(jnp.clip(variances, _LEAST, _MOST))
            where = lambda p: (p.center, p.growth)
            return eqx.tree_at(where, self.scaled(spread), (center, spread))
        found = jnp.where(usable, found, jnp.eye(dim, dtype=found.dtype))
        variances, axes = jnp.linalg.eigh(found)
        spread = jnp.sqrt(jnp.clip(variances, _LEAST, _MOST))
        return Preconditioner(
            center,
            matmul(self.factor, axes) * spread[None],
            matmul(axes.T, self.inverse) / spread[:, None],
            self.log_det + jnp.sum(jnp.log(spread)),
            spread,
        )

    def scaled(self, spread: Float[Array, " dim"]) -> "Preconditioner":
        """Return the one whose columns are longer by these factors."""
        dense = self.factor.ndim > 1
        rows = spread[:, None] if dense else spread
        factor = self.factor * (spread[None] if dense else spread)
        log_det = self.log_det + jnp.sum(jnp.log(spread))
        inverse = self.inverse / rows
        return Preconditioner(self.center, factor, inverse, log_det, self.growth)

    def decoupled(self, chosen: Bool[Array, " dim"]) -> "Preconditioner":
        """Return the one where some coordinates have width 1 and no correlations."""
        if self.factor.ndim == 1:
            factor = jnp.where(chosen, 1, self.factor)
            log_det = jnp.sum(jnp.log(jnp.abs(factor)))
            return Preconditioner(self.center, factor, 1 / factor, log_det, self.growth)
        widths = jnp.sqrt(jnp.sum(self.factor**2, axis=1))
        unit = self.factor / widths[:, None]
        apart = chosen[:, None] | chosen[None]
        eye = jnp.eye(len(widths), dtype=widths.dtype)
        root = jnp.linalg.cholesky(jnp.where(apart, eye, matmul(unit, unit.T)))
        widths = jnp.where(chosen, 1, widths)
        inverse = jax.scipy.linalg.solve_triangular(root, eye, lower=True)
        return Preconditioner(
            self.center,
            widths[:, None] * root,
            inverse / widths[None],
            jnp.sum(jnp.log(widths * jnp.diag(root))),
            self.growth,
        )

    def _times(self, left: Array, right: Array) -> Array:
        # A row times a matrix, since XLA for CPUs aborts on some batches of `F.T @ s`.
        return matmul(left, right) if self.factor.ndim > 1 else left * right
