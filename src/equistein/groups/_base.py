"""Interfaces for groups, which come with their action on a point; no symmetry."""

import abc
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, PyTree

from equistein._check_arguments import accept_integer_key, check_arguments
from equistein._limits import check_memory
from equistein._numbers import check_integers
from equistein._products import matmul, tensordot
from equistein._types import AnyKey, Point


class AbstractGroup(eqx.Module):
    """A compact group and its action on points, which preserves distances.

    The action is linear, and moves scores and displacements like points, unless the
    group has a `push`.
    """

    @abc.abstractmethod
    def act(self, element: PyTree, point: Point) -> Point:
        """Return $g x$."""

    def push(self, element: PyTree, vector: Point) -> Point:
        """Return a score or a displacement, moved with the point that it is at."""
        return self.act(element, vector)

    @abc.abstractmethod
    def compose(self, left: PyTree, right: PyTree) -> PyTree:
        """Return $g h$, for which `act(g h, x) == act(g, act(h, x))`."""

    @abc.abstractmethod
    def inverse(self, element: PyTree) -> PyTree:
        r"""Return $g^{-1}$."""

    @abc.abstractmethod
    def sample(self, key: AnyKey, num: int) -> PyTree:
        """Draw `num` elements from the Haar measure, stacked on axis 0."""

    @abc.abstractmethod
    def canonicalize(self, point: Point) -> Point:
        """Return the representative of the orbit of `point`, a point of it.

        All points of an orbit have the same, up to rounding. It may jump at ties.
        """

    def project(self, point: Point) -> Point:
        """Return the nearest point of the group's subspace, or raise `ValueError`.

        The identity, except for clouds, which it centers, and products with them.
        """
        self.check_shape(point.shape)
        return point

    def project_points(self, points: Any) -> Any:
        """Return the projection of each point, compiled unless it is the identity."""
        if type(self).project is AbstractGroup.project:
            self.check_shape(points.shape[1:])
            return points
        return eqx.filter_jit(eqx.filter_vmap(self.project))(points)

    def check_shape(self, shape: tuple[int, ...]) -> None:
        """Raise `ValueError` unless the group acts on points of this shape."""

    def without_reflections(self) -> "AbstractGroup":
        """Return the subgroup of clouds that keeps mirror images apart, or itself."""
        return self

    def contains(self, other: "AbstractGroup") -> bool:
        """Whether the other group is known to be a subgroup, or is this one."""
        return bool(self == other)

    @property
    def order(self) -> int | None:
        """The number of elements, None if infinite."""
        return None

    @property
    def is_periodic(self) -> bool:
        """Whether particles are in a periodic cell, as with `PeriodicCloud`."""
        return False

    def elements(self) -> PyTree:
        """Return all elements of a finite group, stacked, the identity first."""
        raise ValueError(f"{self} is infinite: draw some elements with `sample`.")

    def orbit(self, point: Point) -> Float[Array, "order *shape"]:
        """Return $g x$ for every element, in the order of `elements`."""
        if self.order is not None:
            needed = self.order * point.size * point.dtype.itemsize
            check_memory(f"The {self.order} copies of a point", needed)
        return jax.vmap(self.act, in_axes=(0, None))(self.elements(), point)


class AbstractFiniteGroup(AbstractGroup):
    """A group whose elements can be enumerated."""

    @property
    @abc.abstractmethod
    def order(self) -> int:
        """The number of elements."""

    @abc.abstractmethod
    def elements(self) -> PyTree:
        """Return all elements, stacked on axis 0; the identity comes first."""

    @accept_integer_key
    def sample(self, key: AnyKey, num: int) -> PyTree:
        chosen = jr.randint(key, (num,), 0, self.order)
        return jax.tree.map(lambda leaf: leaf[chosen], self.elements())


@check_arguments
class Trivial(AbstractFiniteGroup):
    """No symmetry: the identity alone, on points of any shape."""

    @property
    def order(self) -> int:
        return 1

    def elements(self) -> PyTree:
        return jnp.zeros(1, dtype=int)

    def act(self, element: PyTree, point: Point) -> Point:
        return point

    def compose(self, left: PyTree, right: PyTree) -> PyTree:
        return left

    def inverse(self, element: PyTree) -> PyTree:
        return element

    def canonicalize(self, point: Point) -> Point:
        return point


class AbstractMatrixGroup(AbstractGroup):
    """Orthogonal matrices acting on the last axis of a point."""

    dim: eqx.AbstractVar[int]

    def __check_init__(self):
        check_integers(type(self).__name__, dim=self.dim)

    def act(self, element: PyTree, point: Point) -> Point:
        self.check_shape(point.shape)
        return rotate(element, point)

    def compose(self, left: PyTree, right: PyTree) -> PyTree:
        return matmul(left, right)

    def inverse(self, element: PyTree) -> PyTree:
        return jnp.swapaxes(element, -1, -2)

    def check_shape(self, shape: tuple[int, ...]) -> None:
        if len(shape) not in (1, 2) or shape[-1] != self.dim:
            raise ValueError(
                f"{type(self).__name__} acts on points of shape ({self.dim},) or "
                f"(n, {self.dim}), but got points of shape {shape}. Reshape the "
                "points, or choose a group of their dimension."
            )


def rotate(matrix: Float[Array, "dim dim"], point: Point) -> Point:
    """Apply `matrix` to every vector on the last axis of `point`."""
    return tensordot(point, matrix.astype(point.dtype), axes=[[-1], [1]])


def uneven(like: Point) -> Float[Array, "..."]:
    """Return a fixed array without symmetry."""
    numbers = jnp.arange(like.size, dtype=like.dtype)
    return jnp.cos(1.7 * numbers**1.1).reshape(like.shape)
