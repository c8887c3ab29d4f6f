"""Rotations and reflections: of the plane, of d-dimensional space, of images."""

from typing import ClassVar

import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, Int

from equistein._arrays import on_device
from equistein._check_arguments import accept_integer_key, check_arguments
from equistein._limits import check_memory
from equistein._numbers import check_integers
from equistein._products import tensordot
from equistein._types import AnyKey, Point
from equistein.groups._base import (
    AbstractFiniteGroup,
    AbstractMatrixGroup,
    rotate,
    uneven,
)

_BYTES = 80  # of a rotation while all are made, in double precision


@check_arguments
class Cyclic(AbstractFiniteGroup, AbstractMatrixGroup):
    r"""The rotations of the plane by multiples of $2\pi/n$.

    Acts on points of shape `(2,)`, or on `(n, 2)` by turning all vectors together. The
    representative is that whose first vector has its angle in $[-\pi/n, \pi/n)$.

    Args:
        order: The number $n$ of rotations.
    """

    turns: int
    dim: int

    def __init__(self, order: int):
        check_integers("Cyclic", order=order)
        self.turns, self.dim = order, 2

    @property
    def order(self) -> int:
        return self.turns

    def elements(self) -> Float[Array, "order 2 2"]:
        return _rotations(self.turns)

    def canonicalize(self, point: Point) -> Point:
        self.check_shape(point.shape)
        return rotate(_turn_into_sector(point, self.turns), point)


@check_arguments
class Dihedral(AbstractFiniteGroup, AbstractMatrixGroup):
    r"""The symmetries of a regular $n$-gon: $n$ rotations and $n$ reflections.

    Acts on points of shape `(2,)`, or on `(n, 2)` by moving all vectors together. The
    representative is the moved point whose first vector has its angle in $[0, \pi/n]$.

    Args:
        corners: Their number $n$, half the order of the group.
    """

    corners: int
    dim: int

    def __init__(self, corners: int):
        check_integers("Dihedral", corners=corners)
        self.corners, self.dim = corners, 2

    @property
    def order(self) -> int:
        return 2 * self.corners

    def elements(self) -> Float[Array, "order 2 2"]:
        turns = _rotations(self.corners)
        return jnp.concatenate([turns, turns.at[..., 1].multiply(-1)])

    def canonicalize(self, point: Point) -> Point:
        self.check_shape(point.shape)
        turned = rotate(_turn_into_sector(point, self.corners), point)
        below = turned.reshape(-1, 2)[0, 1] < 0
        return jnp.where(below, turned.at[..., 1].multiply(-1), turned)


def _rotations(order: int) -> Float[Array, "order 2 2"]:
    check_memory(f"The {order} rotations", _BYTES * order, "choose a smaller order")
    # In NumPy, so that compiled loops hold numbers and not cosines to compute.
    angles = 2 * np.pi * np.arange(order) / order
    cos, sin = np.cos(angles), np.sin(angles)
    matrices = np.array([[cos, -sin], [sin, cos]]).transpose(2, 0, 1)
    return on_device(matrices)


def _turn_into_sector(point: Point, order: int) -> Float[Array, "2 2"]:
    """Return the rotation that brings the first vector's angle into the sector."""
    first = point.reshape(-1, 2)[0]
    sector = 2 * jnp.pi / order
    turns = jnp.floor(jnp.arctan2(first[1], first[0]) / sector + 0.5)
    cos, sin = jnp.cos(-turns * sector), jnp.sin(-turns * sector)
    return jnp.array([[cos, -sin], [sin, cos]])


class AbstractRotations(AbstractMatrixGroup):
    """All rotations about the origin, with or without reflections."""

    reflections: ClassVar[bool]

    @accept_integer_key
    def sample(self, key: AnyKey, num: int) -> Float[Array, "num dim dim"]:
        return random_rotations(key, self.dim, num, self.reflections)

    def canonicalize(self, point: Point) -> Point:
        self.check_shape(point.shape)
        columns = point.reshape(-1, self.dim).T
        frame, triangle = jnp.linalg.qr(columns, mode="complete")
        signs = jnp.where(jnp.diagonal(triangle) < 0, -1.0, 1.0).astype(point.dtype)
        signs = jnp.concatenate([signs, jnp.ones(self.dim - len(signs), point.dtype)])
        if not self.reflections and columns.shape[1] >= self.dim:
            handedness = jnp.sign(jnp.linalg.det(frame)) * jnp.prod(signs)
            signs = signs.at[-1].multiply(handedness)
        return (signs[:, None] * triangle).T.reshape(point.shape)


@check_arguments
class Orthogonal(AbstractRotations):
    """O(d): the rotations and reflections about the origin.

    Acts on points of shape `(d,)`, or on `(n, d)` by moving all vectors together. The
    representative has its first vector along the first axis, its second in the plane of
    the first two, and so on, with positive new coordinates: of one, `(|x|, 0, ..., 0)`.

    Args:
        dim: The dimension $d$ of space.
    """

    dim: int
    reflections: ClassVar[bool] = True


@check_arguments
class SpecialOrthogonal(AbstractRotations):
    """SO(d): the rotations about the origin.

    As `Orthogonal`, without reflections: when a point has `d` or more vectors, the
    last new coordinate of its representative keeps the sign of its handedness.
    """

    dim: int
    reflections: ClassVar[bool] = False


@check_arguments
class ImageRotations(AbstractFiniteGroup):
    r"""The quarter rotations of a square image: C4; with reflections D4.

    Acts on points of shape `(n, n)` or `(n, n, channel)` by moving pixels. The element
    $4m + k$ reflects the columns if $m = 1$, and then rotates by $k$ quarters, as
    `np.rot90` does. The representative is the image of the orbit with the largest
    product with a fixed image that has no symmetry.

    Args:
        reflections: Whether mirror images belong to the orbit.
    """

    reflections: bool = False

    @property
    def order(self) -> int:
        return 8 if self.reflections else 4

    def elements(self) -> Int[Array, " order"]:
        return jnp.arange(self.order)

    def act(self, element: Int[Array, ""], point: Point) -> Point:
        self.check_shape(point.shape)
        turns, mirrored = element % 4, element >= 4
        point = jnp.where(mirrored, point[:, ::-1], point)
        point = jnp.where(turns % 2 == 1, jnp.swapaxes(point, 0, 1), point)
        point = jnp.where((turns == 1) | (turns == 2), point[::-1], point)
        return jnp.where(turns >= 2, point[:, ::-1], point)

    def compose(
        self, left: Int[Array, "*stack"], right: Int[Array, "*stack"]
    ) -> Int[Array, "*stack"]:
        sign = jnp.where(left >= 4, -1, 1)  # a reflection turns turns around
        turns = (left % 4 + sign * (right % 4)) % 4
        return turns + 4 * ((left // 4 + right // 4) % 2)

    def inverse(self, element: Int[Array, "*stack"]) -> Int[Array, "*stack"]:
        return jnp.where(element >= 4, element, -element % 4)

    def canonicalize(self, point: Point) -> Point:
        copies = self.orbit(point)
        products = tensordot(copies, uneven(point), axes=point.ndim)
        return copies[jnp.argmax(products)]

    def check_shape(self, shape: tuple[int, ...]) -> None:
        if len(shape) not in (2, 3) or shape[0] != shape[1]:
            raise ValueError(
                "ImageRotations acts on points of shape (n, n) or (n, n, channel), "
                f"square images, but got points of shape {shape}. Crop or pad them, "
                "or put the channels last."
            )


def random_rotations(
    key: AnyKey, dim: int, num: int, reflections: bool
) -> Float[Array, "num dim dim"]:
    """Draw from the Haar measure on O(dim), or on SO(dim) without reflections."""
    matrices = jr.orthogonal(key, dim, (num,))
    if reflections:
        return matrices
    flip = jnp.sign(jnp.linalg.det(matrices))[:, None]
    # Flipping one column where det < 0 keeps the measure: the flip is in O(dim).
    return matrices.at[:, :, 0].multiply(flip)
