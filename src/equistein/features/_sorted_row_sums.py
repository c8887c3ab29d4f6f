"""The sum of each particle's distances, sorted within each species."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from equistein._gate import gate
from equistein._types import Features, Point
from equistein.features._base import smooth_norm, smooth_norm_laplacian
from equistein.features._pair_features import AbstractPairFeatures
from equistein.groups import encode_species


@gate
class SortedRowSums(AbstractPairFeatures):
    r"""Each particle's mean distance to the others, sorted within species.

    $$F_i = \frac{1}{n - 1} \sum_{j \ne i} \sqrt{|x_i - x_j|^2 + \epsilon^2}$$

    Sorted distances forget which distances share a particle, so that different shapes
    can have nearly the same ones; these numbers remember some of it. Smooth except
    where two like particles tie.

    Args:
        species: One label for each particle; particles with the same label are alike.
        epsilon: The length below which distances are smoothed.

    Raises:
        ValueError: If there are fewer than two particles or `epsilon` is not positive.
    """

    species: tuple[int, ...] = eqx.field(converter=encode_species)
    epsilon: float = eqx.field(default=1e-2, converter=float)

    def __call__(self, point: Point) -> Features:
        sums = self._means(self._distances(point))
        return sums[self._order(sums)]

    def laplacian(self, point: Point) -> Features:
        distances = self._distances(point)
        # Both particles of a pair move, and each contributes the Laplacian in r.
        dim = point.shape[-1]
        each = 2 * smooth_norm_laplacian(distances, dim, self.epsilon)
        return self._means(each)[self._order(self._means(distances))]

    def _distances(self, point: Point) -> Float[Array, "atom atom"]:
        self.group(point.shape)
        return smooth_norm(point[:, None] - point[None, :], self.epsilon)

    def _means(self, pairs: Float[Array, "atom atom"]) -> Features:
        others = 1 - jnp.eye(len(self.species), dtype=pairs.dtype)
        return jnp.sum(pairs * others, axis=1) / (len(self.species) - 1)

    def _order(self, sums: Features) -> Int[Array, " feature"]:
        """Return the indices that sort within species, species after species."""
        labels = np.array(self.species)
        members = [np.flatnonzero(labels == kind) for kind in np.unique(labels)]
        return jnp.concatenate(
            [jnp.asarray(like)[jnp.argsort(sums[like])] for like in members]
        )
