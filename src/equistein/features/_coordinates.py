"""The coordinates themselves: features without a symmetry."""

import jax.numpy as jnp

from equistein._types import Features, Point
from equistein.features._base import AbstractFeatures
from equistein.groups import Trivial


class Coordinates(AbstractFeatures):
    """The flattened coordinates of a point of any shape, $F(x) = x$."""

    def __call__(self, point: Point) -> Features:
        return point.ravel()

    def laplacian(self, point: Point) -> Features:
        return jnp.zeros_like(point.ravel())

    def group(self, shape: tuple[int, ...]) -> Trivial:
        del shape
        return Trivial()
