"""Finite groups of the plane: rotations, and rotations with reflections."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from equistein._gate import gate
from equistein._limits import check_memory
from equistein._numbers import check_integers
from equistein._products import matmul
from equistein._types import Point
from equistein.groups._base import AbstractFiniteGroup, AbstractMatrixGroup, rotate

_BYTES = 80  # of a rotation while all are made, in double precision


@gate
class Cyclic(AbstractFiniteGroup, AbstractMatrixGroup):
    r"""The rotations of the plane by multiples of $2\pi/n$.

    Acts on points of shape `(2,)`, or on `(n, 2)` by turning all vectors together.
    The representative is the turned point whose first vector has its angle in
    $[-\pi/n, \pi/n)$.

    Args:
        order: The number $n$ of rotations.

    Raises:
        ValueError: If `order` is not a positive integer.
    """

    turns: int
    dim: int

    def __init__(self, order: int):
        check_integers("Cyclic", order=order)
        self.turns = order
        self.dim = 2

    @property
    def order(self) -> int:
        return self.turns

    def elements(self) -> Float[Array, "order 2 2"]:
        return _rotations(self.turns)

    def canonicalize(self, point: Point) -> Point:
        self.check_shape(point.shape)
        return rotate(_turn_into_sector(point, self.turns), point)


@gate
class Dihedral(AbstractFiniteGroup, AbstractMatrixGroup):
    r"""The symmetries of a regular $n$-gon: $n$ rotations and $n$ reflections.

    Acts on points of shape `(2,)`, or on `(n, 2)` by moving all vectors together.
    The representative is the moved point whose first vector has its angle in
    $[0, \pi/n]$. `Dihedral(n).order` is $2n$.

    Args:
        order: The number $n$ of corners, half the order of the group.

    Raises:
        ValueError: If `order` is not a positive integer.
    """

    corners: int
    dim: int

    def __init__(self, order: int):
        check_integers("Dihedral", order=order)
        self.corners = order
        self.dim = 2

    @property
    def order(self) -> int:
        return 2 * self.corners

    def elements(self) -> Float[Array, "order 2 2"]:
        turns = _rotations(self.corners)
        return jnp.concatenate([turns, matmul(turns, _reflection(turns))])

    def canonicalize(self, point: Point) -> Point:
        self.check_shape(point.shape)
        turned = rotate(_turn_into_sector(point, self.corners), point)
        below = turned.reshape(-1, 2)[0, 1] < 0
        return jnp.where(below, rotate(_reflection(turned), turned), turned)


def _rotations(order: int) -> Float[Array, "order 2 2"]:
    check_memory(f"The {order} rotations", _BYTES * order, "choose a smaller order")
    # In NumPy, so that compiled loops hold numbers and not cosines to compute.
    angles = 2 * np.pi * np.arange(order) / order
    cos, sin = np.cos(angles), np.sin(angles)
    matrices = np.array([[cos, -sin], [sin, cos]]).transpose(2, 0, 1)
    return jnp.asarray(matrices, dtype=float)


def _rotation(angle: Float[Array, ""]) -> Float[Array, "2 2"]:
    cos, sin = jnp.cos(angle), jnp.sin(angle)
    return jnp.array([[cos, -sin], [sin, cos]])


def _reflection(like: PyTree) -> Float[Array, "2 2"]:
    return jnp.diag(jnp.array([1.0, -1.0], like.dtype))


def _turn_into_sector(point: Point, order: int) -> Float[Array, "2 2"]:
    """Return the rotation that brings the first vector's angle into the sector."""
    first = point.reshape(-1, 2)[0]
    sector = 2 * jnp.pi / order
    turns = jnp.floor(jnp.arctan2(first[1], first[0]) / sector + 0.5)
    return _rotation(-turns * sector)
