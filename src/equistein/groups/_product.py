"""Groups that act on the same points and commute."""

import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, PyTree

from equistein._gate import gate
from equistein._products import tensordot
from equistein._types import Point
from equistein.groups._base import AbstractGroup
from equistein.groups._combined import AbstractCombined, all_tuples, check_groups

_NUM_TRIED = 3  # elements of each group, to see whether they commute


@gate
class Product(AbstractCombined):
    """The product of groups that act on the same points and commute.

    `Product(Permutations(3), Cyclic(4))` swaps three vectors of the plane and turns
    them all: points of shape (3, 2). The representative is, of those of the group
    without an end of elements over the elements of all others, the one with the
    largest product with a fixed array that has no symmetry; it takes as many trials as
    the others have elements. `order` counts the tuples of elements, of which several
    may act alike.

    Swaps and changes of sign do not commute: see `SignedPermutations`.

    Args:
        *groups: The groups, at most one of them without an end of elements.

    Raises:
        ValueError: If one is no group, more than one is not finite, or, once the shape
            of points is known, they do not commute.
    """

    groups: tuple[AbstractGroup, ...]

    def __init__(self, *groups: AbstractGroup):
        check_groups("Product", groups)
        if sum(group.order is None for group in groups) > 1:
            raise ValueError(
                f"Product needs groups of which one at most is not finite, but got "
                f"{groups}. Several that act on parts of a point are a Direct sum."
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
        copies = point[None]
        if finite:
            moves = Product(*finite)
            elements = all_tuples(finite)
            copies = jax.vmap(moves.act, (0, None))(elements, point)
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
            gap = float(self._largest_gap(shape))
        if gap > 1e-3:
            raise ValueError(
                f"Product needs groups that commute, but {self.groups} do not on "
                f"points of shape {shape}: a point ends {gap:.2g} apart. Take "
                "SignedPermutations for swaps with changes of sign, or a Direct sum "
                "of groups on parts of the point."
            )

    def _largest_gap(self, shape: tuple[int, ...]) -> Float[Array, ""]:
        """Return how far points that are moved in both orders end apart."""
        point = uneven(jnp.zeros(shape, jnp.float32))
        elements = self.sample(jr.key(0), _NUM_TRIED)

        def gap(element: PyTree) -> Float[Array, ""]:
            pairs = list(zip(self.groups, element, strict=True))
            there = back = point
            for group, g in pairs:
                there = group.act(g, there)
            for group, g in reversed(pairs):
                back = group.act(g, back)
            return jnp.max(jnp.abs(there - back))

        return jnp.max(jax.vmap(gap)(elements))


def uneven(like: Point) -> Float[Array, "..."]:
    """Return a fixed array without symmetry."""
    numbers = jnp.arange(like.size, dtype=like.dtype)
    return jnp.cos(1.7 * numbers**1.1).reshape(like.shape)
