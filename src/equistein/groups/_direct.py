"""Groups that act each on its part of a point."""

import math
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from equistein._gate import gate
from equistein._types import Point
from equistein.groups._base import AbstractGroup
from equistein.groups._combined import AbstractCombined, check_groups


@gate
class Direct(AbstractCombined):
    """The direct sum of groups, each of which acts on its own part of a flat point.

    `Direct((Permutations(3), (3, 2)), (Trivial(), (4,)))` acts on points of shape
    (10,): six numbers are three vectors that are swapped, and the other four stay.
    The representative is that of each part.

    Args:
        *parts: Pairs of a group and the shape of the points that it acts on, in the
            order in which they stand in the flat point.

    Raises:
        ValueError: If a part is not such a pair, or a group does not act on its shape.
    """

    groups: tuple[AbstractGroup, ...]
    shapes: tuple[tuple[int, ...], ...]

    def __init__(self, *parts: tuple[AbstractGroup, Any]):
        try:
            self.groups = tuple(group for group, _ in parts)
            self.shapes = tuple(tuple(map(int, shape)) for _, shape in parts)
        except (TypeError, ValueError):
            raise ValueError(
                "Direct needs pairs of a group and the shape of its part, such as "
                f"(Permutations(3), (3, 2)), but got {parts!r}."
            ) from None
        check_groups("Direct", self.groups)
        for group, shape in zip(self.groups, self.shapes, strict=True):
            group.check_shape(shape)

    def act(self, element: PyTree, point: Point) -> Point:
        return self._joined("act", point, element)

    def push(self, element: PyTree, vector: Point) -> Point:
        return self._joined("push", vector, element)

    def canonicalize(self, point: Point) -> Point:
        return self._joined("canonicalize", point)

    def project(self, point: Point) -> Point:
        return self._joined("project", point)

    def check_shape(self, shape: tuple[int, ...]) -> None:
        size = sum(map(math.prod, self.shapes))
        if shape != (size,):
            raise ValueError(
                f"Direct acts on points of shape ({size},), the sizes of {self.shapes} "
                f"together, but got points of shape {shape}. Flatten the points, or "
                "give each part its shape."
            )

    def _joined(self, method: str, point: Point, element: PyTree = None) -> Point:
        """Return the flat point of what a method of each group makes of its part."""
        self.check_shape(point.shape)
        ends = np.cumsum([math.prod(shape) for shape in self.shapes])[:-1]
        moved = []
        for i, part in enumerate(jnp.split(point, ends)):
            part = part.reshape(self.shapes[i])
            before = () if element is None else (element[i],)
            moved.append(getattr(self.groups[i], method)(*before, part).ravel())
        return jnp.concatenate(moved)
