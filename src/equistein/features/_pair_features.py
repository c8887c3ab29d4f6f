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
        """Return the smoothed distance of each pair, those of like pairs together.

        Raises:
            ValueError: If the point has not one particle for each label.
        """
        self.group(point.shape)
        return smooth_norm(pair_differences(point, self._pairs()), self.epsilon)

    def blocks(self) -> list[slice]:
        """Return where the distances of each pair of species are.

        They are slices, since to gather is slow, and its derivative slower.
        """
        sizes = np.unique(self._kinds(), axis=0, return_counts=True)[1]
        ends = np.cumsum(sizes)
        return [slice(end - size, end) for end, size in zip(ends, sizes, strict=True)]

    def _pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the first and the second particle of each pair, in blocks."""
        first, second = np.triu_indices(len(self.species), k=1)
        order = np.lexsort(self._kinds().T[::-1])
        return first[order], second[order]

    def _kinds(self) -> np.ndarray:
        """Return the two species of each pair, `(pair, 2)`, the lower one first."""
        labels = np.array(self.species)
        ends = [labels[i] for i in np.triu_indices(len(labels), k=1)]
        return np.sort(np.stack(ends), axis=0).T
