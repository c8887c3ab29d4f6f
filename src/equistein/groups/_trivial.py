"""The group of one element."""

import jax.numpy as jnp
from jaxtyping import PyTree

from equistein._gate import gate
from equistein._types import Point
from equistein.groups._base import AbstractFiniteGroup


@gate
class Trivial(AbstractFiniteGroup):
    """No symmetry: the identity alone, on points of any shape."""

    @property
    def order(self) -> int:
        return 1

    def elements(self) -> PyTree:
        return jnp.zeros(1, dtype=int)

    def act(self, element: PyTree, point: Point) -> Point:
        del element
        return point

    def compose(self, left: PyTree, right: PyTree) -> PyTree:
        del right
        return left

    def inverse(self, element: PyTree) -> PyTree:
        return element

    def canonicalize(self, point: Point) -> Point:
        return point
