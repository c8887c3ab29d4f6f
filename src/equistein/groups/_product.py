"""Products of groups: on the same points, or each on its part of a point."""

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, PyTree

from equistein._check_arguments import accept_integer_key, check_arguments
from equistein._limits import check_memory
from equistein._products import tensordot
from equistein._types import AnyKey, Point
from equistein.groups._base import AbstractGroup, uneven

_NUM_TRIED = 3  # elements of each group, to check that they commute
_BYTES = 64  # of a tuple of elements, at least, while all are made


class AbstractCombined(AbstractGroup):
    """A product of groups, whose elements are tuples with one of each."""

    groups: eqx.AbstractVar[tuple[AbstractGroup, ...]]

    def compose(self, left: PyTree, right: PyTree) -> PyTree:
        triples = zip(self.groups, left, right, strict=True)
        return tuple(group.compose(g, h) for group, g, h in triples)

    def inverse(self, element: PyTree) -> PyTree:
        pairs = zip(self.groups, element, strict=True)
        return tuple(group.inverse(g) for group, g in pairs)

    @accept_integer_key
    def sample(self, key: AnyKey, num: int) -> PyTree:
        keys = jr.split(key, len(self.groups))
        pairs = zip(self.groups, keys, strict=True)
        return tuple(group.sample(k, num) for group, k in pairs)

    @property
    def order(self) -> int | None:
        orders = [group.order for group in self.groups]
        return None if None in orders else math.prod(filter(None, orders))

    def elements(self) -> PyTree:
        elements = [group.elements() for group in self.groups]
        orders = [len(jax.tree.leaves(each)[0]) for each in elements]
        num = math.prod(orders)
        check_memory(f"The {num} elements of the product", _BYTES * num)
        places = jnp.unravel_index(jnp.arange(num), orders)
        take = lambda each, place: jax.tree.map(lambda leaf: leaf[place], each)
        return tuple(map(take, elements, places))


@check_arguments
class Product(AbstractCombined):
    """The product of groups that act on the same points and commute.

    `Product(Permutations(3), Cyclic(4))` permutes three vectors of the plane and
    rotates them all: points of shape (3, 2). The representative is the one, of the
    infinite group's over all elements of the others, with the largest product with a
    fixed array that has no symmetry. `order` counts tuples of elements, of which
    several may act alike.

    Args:
        *groups: The groups, at most one of them infinite.
    """

    groups: tuple[AbstractGroup, ...]

    def __init__(self, *groups: AbstractGroup):
        if not groups or sum(group.order is None for group in groups) > 1:
            raise ValueError(
                "Product needs `groups`, at least one and at most one infinite, but "
                f"got {groups}. Several that act on parts of a point are a Direct sum."
            )
        self.groups = groups

    def act(self, element: PyTree, point: Point) -> Point:
        for group, g in zip(self.groups, element, strict=True):
            point = group.act(g, point)
        return point

    def push(self, element: PyTree, vector: Point) -> Point:
        for group, g in zip(self.groups, element, strict=True):
            vector = group.push(g, vector)
        return vector

    def canonicalize(self, point: Point) -> Point:
        finite = tuple(group for group in self.groups if group.order is not None)
        point = self.project(point)
        copies = Product(*finite).orbit(point) if finite else point[None]
        for group in self.groups:
            if group.order is None:
                copies = jax.vmap(group.canonicalize)(copies)
        products = tensordot(copies, uneven(point), axes=point.ndim)
        return copies[jnp.argmax(products)]

    def project(self, point: Point) -> Point:
        self.check_shape(point.shape)
        for group in self.groups:
            point = group.project(point)
        return point

    def check_shape(self, shape: tuple[int, ...]) -> None:
        for group in self.groups:
            group.check_shape(shape)
        with jax.ensure_compile_time_eval():
            elements = self.sample(jr.key(0), _NUM_TRIED)
            point = uneven(jnp.zeros(shape, jnp.float32))
            gap = float(jnp.max(jax.vmap(self._gap, (0, None))(elements, point)))
        if gap > 1e-3:
            raise ValueError(
                f"Product needs groups that commute, but {self.groups} do not on "
                f"points of shape {shape}: a point ends {gap:.2g} apart. Use "
                "SignedPermutations for permutations with changes of sign, or a Direct "
                "sum of groups on parts of the point."
            )

    def _gap(self, element: PyTree, point: Point) -> Float[Array, ""]:
        """Return how far apart a point ends that is moved in both orders."""
        back = point
        for group, g in reversed(list(zip(self.groups, element, strict=True))):
            back = group.act(g, back)
        return jnp.max(jnp.abs(self.act(element, point) - back))


@check_arguments
class Direct(AbstractCombined):
    """The direct sum of groups, each of which acts on its own part of a flat point.

    `Direct((Permutations(3), (3, 2)), (Trivial(), (4,)))` acts on points of shape
    (10,): it permutes three vectors, and leaves four numbers. The representative is
    that of each part.

    Args:
        *parts: Pairs of a group and the shape of the points that it acts on, in the
            order of the flat point.
    """

    groups: tuple[AbstractGroup, ...]
    shapes: tuple[tuple[int, ...], ...]

    def __init__(self, *parts: tuple[AbstractGroup, Any]):
        try:
            self.groups = tuple(group for group, _ in parts)
            self.shapes = tuple(tuple(map(int, shape)) for _, shape in parts)
        except (TypeError, ValueError):
            parts = ()
        if not parts:
            raise ValueError(
                "Direct needs pairs of a group and the shape of its part, such as "
                "(Permutations(3), (3, 2)), at least one."
            )
        for group, shape in zip(self.groups, self.shapes, strict=True):
            group.check_shape(shape)

    def act(self, element: PyTree, point: Point) -> Point:
        return self._join("act", point, element)

    def push(self, element: PyTree, vector: Point) -> Point:
        return self._join("push", vector, element)

    def canonicalize(self, point: Point) -> Point:
        return self._join("canonicalize", point)

    def project(self, point: Point) -> Point:
        return self._join("project", point)

    def check_shape(self, shape: tuple[int, ...]) -> None:
        size = sum(map(math.prod, self.shapes))
        if shape != (size,):
            raise ValueError(
                f"Direct acts on points of shape ({size},), the sizes of {self.shapes} "
                f"together, but got points of shape {shape}. Flatten the points, or "
                "give each part its shape."
            )

    def _join(self, method: str, point: Point, element: PyTree = None) -> Point:
        """Return the flat point after a method of each group on its part."""
        self.check_shape(point.shape)
        ends = np.cumsum([math.prod(shape) for shape in self.shapes])[:-1]
        moved = []
        for i, part in enumerate(jnp.split(point, ends)):
            part = part.reshape(self.shapes[i])
            before = () if element is None else (element[i],)
            moved.append(getattr(self.groups[i], method)(*before, part).ravel())
        return jnp.concatenate(moved)
