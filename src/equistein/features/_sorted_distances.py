"""The distances between particles, sorted within each pair of species."""

import equinox as eqx
import jax.numpy as jnp

from equistein._gate import gate
from equistein._types import Features, Point
from equistein.features._base import smooth_norm_laplacian
from equistein.features._pair_features import AbstractPairFeatures
from equistein.groups import encode_species


@gate
class SortedDistances(AbstractPairFeatures):
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

    species: tuple[int, ...] = eqx.field(converter=encode_species)
    epsilon: float = eqx.field(default=1e-2, converter=float)

    def __call__(self, point: Point) -> Features:
        distances = self.distances(point)
        return jnp.concatenate([jnp.sort(distances[like]) for like in self.blocks()])

    def laplacian(self, point: Point) -> Features:
        distances = self(point)
        # Both particles of a pair move, and each contributes the Laplacian in r.
        return 2 * smooth_norm_laplacian(distances, point.shape[-1], self.epsilon)
