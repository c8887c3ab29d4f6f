"""The rotations, and the rotations and reflections, of d-dimensional space."""

import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float

from equistein._arrays import as_keys
from equistein._gate import gate, keyed
from equistein._products import matmul
from equistein._types import AnyKey, Key, Point
from equistein.groups._base import AbstractMatrixGroup, rotate


@gate
class Orthogonal(AbstractMatrixGroup):
    """O(d): the rotations and reflections about the origin.

    Acts on points of shape `(d,)`, or on `(n, d)` by moving all vectors together.
    The representative has its first vector along the first axis, its second in the
    plane of the first two, and so on, with positive new coordinates; for one vector
    it is `(|x|, 0, ..., 0)`.

    Args:
        dim: The dimension $d$ of space.

    Raises:
        ValueError: If `dim` is not a positive integer.
    """

    dim: int

    @keyed
    def sample(self, key: AnyKey, num: int) -> Float[Array, "num dim dim"]:
        return jr.orthogonal(key, self.dim, (num,))

    def canonicalize(self, point: Point) -> Point:
        self.check_shape(point.shape)
        return _triangular(point, self.dim, reflections=True)

    def nearest(self, point: Point, to: Point) -> Point:
        self.check_shape(point.shape)
        return rotate(best_rotation(point, to, reflections=True), point)


@gate
class SpecialOrthogonal(AbstractMatrixGroup):
    """SO(d): the rotations about the origin.

    As `Orthogonal`, without reflections: when a point has `d` or more vectors, the
    last new coordinate of its representative keeps the sign of its handedness.

    Args:
        dim: The dimension $d$ of space.

    Raises:
        ValueError: If `dim` is not a positive integer.
    """

    dim: int

    def sample(self, key: AnyKey, num: int) -> Float[Array, "num dim dim"]:
        return special_orthogonal(as_keys(key), self.dim, num)

    def canonicalize(self, point: Point) -> Point:
        self.check_shape(point.shape)
        return _triangular(point, self.dim, reflections=False)

    def nearest(self, point: Point, to: Point) -> Point:
        self.check_shape(point.shape)
        return rotate(best_rotation(point, to, reflections=False), point)


def special_orthogonal(key: Key, dim: int, num: int) -> Float[Array, "num dim dim"]:
    """Draw rotations from the Haar measure on SO(dim)."""
    matrices = jr.orthogonal(key, dim, (num,))
    flip = jnp.sign(jnp.linalg.det(matrices))[:, None]
    # Flipping one column where det < 0 keeps the measure: the flip is in O(dim).
    return matrices.at[:, :, 0].multiply(flip)


def best_rotation(
    point: Point, to: Point, *, reflections: bool
) -> Float[Array, "dim dim"]:
    r"""Return the matrix R with the least $\sum_i |R x_i - y_i|^2$.

    References:
        Kabsch (1976), A solution for the best rotation to relate two sets of vectors.
    """
    dim = point.shape[-1]
    left, _, right = jnp.linalg.svd(
        matmul(to.reshape(-1, dim).T, point.reshape(-1, dim))
    )
    if reflections:
        return matmul(left, right)
    handedness = jnp.sign(jnp.linalg.det(left) * jnp.linalg.det(right))
    return matmul(left.at[:, -1].multiply(handedness), right)


def _triangular(point: Point, dim: int, *, reflections: bool) -> Point:
    """Turn `point` so that its vectors, as rows, form a lower triangle."""
    columns = point.reshape(-1, dim).T
    frame, triangle = jnp.linalg.qr(columns, mode="complete")
    diagonal = jnp.diagonal(triangle)
    signs = jnp.where(diagonal < 0, -1.0, 1.0).astype(point.dtype)
    signs = jnp.concatenate([signs, jnp.ones(dim - len(signs), point.dtype)])
    if not reflections and columns.shape[1] >= dim:
        handedness = jnp.sign(jnp.linalg.det(frame)) * jnp.prod(signs)
        signs = signs.at[-1].multiply(handedness)
    return (signs[:, None] * triangle).T.reshape(point.shape)
