"""Several feature maps as one."""

import jax.numpy as jnp

from equistein._gate import gate
from equistein._types import Features, Point
from equistein.features._base import AbstractFeatures
from equistein.groups import AbstractGroup


@gate
class Concatenated(AbstractFeatures):
    """The features of several maps, one after the other.

    Args:
        parts: Feature maps that are constant on the same orbits.

    Raises:
        ValueError: If there is no part.
    """

    parts: tuple[AbstractFeatures, ...]

    def __init__(self, *parts: AbstractFeatures):
        if not parts:
            raise ValueError("Concatenated needs at least one feature map.")
        self.parts = parts

    def __call__(self, point: Point) -> Features:
        return jnp.concatenate([part(point) for part in self.parts])

    def laplacian(self, point: Point) -> Features:
        return jnp.concatenate([part.laplacian(point) for part in self.parts])

    def group(self, shape: tuple[int, ...]) -> AbstractGroup:
        groups = [part.group(shape) for part in self.parts]
        if any(group != groups[0] for group in groups):
            raise ValueError(
                f"The parts of Concatenated must share their group, but have {groups}."
            )
        return groups[0]
