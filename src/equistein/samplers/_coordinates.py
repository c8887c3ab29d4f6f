"""Coordinates on the subspace that a linear projection projects on."""

import math
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from equistein._products import matmul
from equistein._types import Point

_TOLERANCE = 1e-4  # of a projection in single precision


class SubspaceCoordinates(eqx.Module):
    r"""Coordinates z of points $x = B z$, B an orthonormal basis of a subspace.

    Lengths, volumes and normal distributions are those of the subspace itself. Without
    a basis the subspace is the whole space, and z is x in one row.
    """

    basis: Float[Array, "size coordinate"] | None
    shape: tuple[int, ...] = eqx.field(static=True)

    @property
    def dim(self) -> int:
        """The dimension of the subspace."""
        return math.prod(self.shape) if self.basis is None else self.basis.shape[1]

    def of(self, point: Point) -> Float[Array, " coordinate"]:
        r"""Return $B^\top x$: the coordinates of a point, or of a score."""
        flat = point.ravel()
        if self.basis is None:
            return flat
        return matmul(flat, self.basis.astype(point.dtype))

    def point(self, coordinates: Float[Array, " coordinate"]) -> Point:
        """Return the point $B z$."""
        if self.basis is not None:
            coordinates = matmul(self.basis.astype(coordinates.dtype), coordinates)
        return coordinates.reshape(self.shape)


def coordinates_on(
    name: str, project: Callable[[Point], Point], shape: tuple[int, ...]
) -> SubspaceCoordinates:
    """Return coordinates on the subspace that points of this shape are projected on.

    The basis is found by what the projection does to unit vectors, before anything is
    compiled: it may hold no array that is traced.

    Args:
        name: The sampler's name, for the error.
        project: The projection.
        shape: The shape of a point.

    Raises:
        ValueError: If it is not linear and orthogonal, or leaves only the origin.
    """
    size = math.prod(shape)
    with jax.ensure_compile_time_eval():
        zero = jnp.zeros(shape)
        matrix = np.asarray(jax.jacfwd(project)(zero), float).reshape(size, size)
        probe = np.linspace(-1.0, 2.0, size).reshape(shape)
        image = np.asarray(project(jnp.asarray(probe, zero.dtype)), float).ravel()
    gaps = [matrix - matrix.T, matrix @ matrix - matrix, image - matrix @ probe.ravel()]
    if not all(np.max(np.abs(gap), initial=0.0) < _TOLERANCE for gap in gaps):
        raise ValueError(
            f"{name} needs a `project` that is a linear orthogonal projection, as the "
            "one that moves the center of mass to the origin, to have coordinates on "
            f"its image, but got {project!r}."
        )
    if np.max(np.abs(matrix - np.eye(size)), initial=0.0) < _TOLERANCE:
        return SubspaceCoordinates(None, shape)
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    basis = vectors[:, values > 0.5]
    if not basis.shape[1]:
        raise ValueError(f"{name} got a `project` that leaves nothing but the origin.")
    return SubspaceCoordinates(jnp.asarray(basis, zero.dtype), shape)
