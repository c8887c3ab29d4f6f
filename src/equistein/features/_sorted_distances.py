"""The distances between particles, sorted within each pair of species."""

from collections.abc import Hashable, Sequence

import jax.numpy as jnp

from equistein._types import Features, Point
from equistein.features._base import (
    AbstractFeatures,
    check_epsilon,
    check_species,
    pair_blocks,
    pair_differences,
    point_cloud,
    smooth_norm,
    smooth_norm_laplacian,
)
from equistein.groups import PointCloud


class SortedDistances(AbstractFeatures):
    r"""All pair distances $\sqrt{r^2 + \epsilon^2}$, sorted within species pairs.

    Constant on the orbits of `PointCloud(species, dim)` with reflections, for points
    of shape `(n, dim)`; there are $n(n-1)/2$ features. Smooth where particles meet.
    Where two distances of like pairs are equal, F is continuous and its gradient
    jumps; a kernel pulled back along F then has a small Stein bias (the divergence
    misses the fold).

    Args:
        species: One label for each particle; particles with the same label are alike.
        epsilon: The length below which distances are smoothed.

    Raises:
        ValueError: If there are fewer than two particles or `epsilon` is not positive.
    """

    species: tuple[int, ...]
    epsilon: float

    def __init__(self, species: Sequence[Hashable], epsilon: float = 1e-2):
        self.species = check_species("SortedDistances", species)
        self.epsilon = check_epsilon("SortedDistances", epsilon)

    def __call__(self, point: Point) -> Features:
        distances = self._distances(point)
        return jnp.concatenate(
            [jnp.sort(distances[like]) for like in pair_blocks(self.species)]
        )

    def laplacian(self, point: Point) -> Features:
        distances = self(point)
        # Both particles of a pair move, and each contributes the Laplacian in r.
        return 2 * smooth_norm_laplacian(distances, point.shape[-1], self.epsilon)

    def group(self, shape: tuple[int, ...]) -> PointCloud:
        return point_cloud("SortedDistances", self.species, shape)

    def _distances(self, point: Point) -> Features:
        return smooth_norm(pair_differences(point), self.epsilon)
