"""Coordinates on a subspace, for algorithms that know no projection."""

import math
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from equistein._products import matmul
from equistein._types import LogDensity, Point
from equistein.samplers._scores import everywhere

_TOLERANCE = 1e-4  # of a projection in single precision


class Coordinates(eqx.Module):
    r"""Coordinates z of points $x = B z$, B an orthonormal basis of a subspace.

    Lengths, volumes and normal distributions are those of the subspace. Without a basis
    it is the whole space. Coordinates have JAX's default precision, points their own.
    """

    basis: Float[Array, "size coordinate"] | None
    shape: tuple[int, ...] = eqx.field(static=True)
    dtype: Any = eqx.field(static=True)

    @property
    def dim(self) -> int:
        return math.prod(self.shape) if self.basis is None else self.basis.shape[1]

    def of(self, point: Point) -> Float[Array, " coordinate"]:
        r"""Return $B^\top x$: the coordinates of a point, or of a score."""
        flat = point.ravel().astype(float)
        return flat if self.basis is None else matmul(flat, self.basis)

    def point(self, coordinates: Float[Array, " coordinate"]) -> Point:
        """Return the point $B z$."""
        if self.basis is not None:
            coordinates = matmul(self.basis, coordinates)
        return coordinates.reshape(self.shape).astype(self.dtype)

    def density(self, log_density: LogDensity) -> LogDensity:
        """Return a log density of points as one of coordinates."""
        return lambda z: log_density(self.point(z)).astype(float)


def coordinates_on(
    project: Callable[[Point], Point], shape: tuple[int, ...], dtype: Any
) -> Coordinates:
    """Return coordinates on the subspace that points of this shape are projected on.

    Raises `ValueError` if the projection is not linear and orthogonal.
    """
    if project is everywhere:
        return Coordinates(None, shape, dtype)
    size = math.prod(shape)
    # The subspace's dimension is a shape, so the basis cannot be traced.
    with jax.ensure_compile_time_eval():
        matrix = np.asarray(jax.jacfwd(project)(jnp.zeros(shape)), float)
        probe = np.linspace(-1.0, 2.0, size)
        image = np.ravel(project(jnp.asarray(probe.reshape(shape), float)))
    matrix = matrix.reshape(size, size)
    values, vectors = np.linalg.eigh(matrix)
    basis = vectors[:, values > 0.5]
    gaps = matrix - basis @ basis.T, image - matrix @ probe
    if not basis.shape[1] or not all(np.max(np.abs(g)) < _TOLERANCE for g in gaps):
        raise ValueError(
            "from_blackjax needs a `project` that is a linear orthogonal projection, "
            "as the one that moves the center of mass to the origin, but got "
            f"{project!r}."
        )
    return Coordinates(jnp.asarray(basis, float), shape, dtype)
