"""What the features of distances between particles share."""

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float

from equistein._numbers import check_positive
from equistein._types import Point
from equistein.features._base import (
    AbstractFeatures,
    pair_differences,
    smooth_norm,
    SMOOTHED,
)
from equistein.groups import PointCloud


class AbstractPairFeatures(AbstractFeatures):
    """Features of smoothed distances, constant on the orbits of a `PointCloud`."""

    species: eqx.AbstractVar[tuple[int, ...]]
    epsilon: eqx.AbstractVar[float]

    def __check_init__(self):
        name = type(self).__name__
        check_positive(name, meaning=SMOOTHED, epsilon=self.epsilon)
        if len(self.species) < 2:
            raise ValueError(
                f"{name} needs `species` of at least two particles, but got "
                f"{len(self.species)}."
            )

    def group(self, shape: tuple[int, ...]) -> PointCloud:
        num = len(self.species)
        if len(shape) != 2 or shape[0] != num:
            raise ValueError(
                f"{type(self).__name__} with {num} `species` needs points of shape "
                f"({num}, dim), but got points of shape {shape}. Give one label for "
                "each particle."
            )
        return PointCloud(self.species, shape[1])

    def distances(self, point: Point) -> Float[Array, " pair"]:
        """Return the smoothed distance of each pair.

        Raises:
            ValueError: If the point has not one particle for each label.
        """
        self.group(point.shape)
        return smooth_norm(pair_differences(point), self.epsilon)

    def blocks(self) -> list[np.ndarray]:
        """Return the indices of the pairs of each pair of species.

        The pairs are numbered as `np.triu_indices(len(species), k=1)` lists them.
        """
        labels = np.array(self.species)
        ends = np.stack([labels[i] for i in np.triu_indices(len(labels), k=1)])
        kinds = np.sort(ends, axis=0).T
        return [
            np.flatnonzero((kinds == kind).all(axis=1))
            for kind in np.unique(kinds, axis=0)
        ]
