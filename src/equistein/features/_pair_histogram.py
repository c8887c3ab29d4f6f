"""Smooth histograms of the distances between particles."""

from collections.abc import Hashable, Sequence

import jax.numpy as jnp
from jaxtyping import Array, Float

from equistein._check_arguments import check_arguments
from equistein._numbers import check_integers, check_positive
from equistein._products import matmul
from equistein._types import Features, Point
from equistein.features._base import smooth_norm_laplacian
from equistein.features._pair_features import AbstractPairFeatures
from equistein.groups import encode_species


@check_arguments
class PairHistogram(AbstractPairFeatures):
    r"""A smooth histogram of the distances of each pair of species.

    With $d_{ij} = \sqrt{r_{ij}^2 + \epsilon^2}$, for the m pairs of two species and
    centers $c$ spread evenly over $[0, \ell]$,

    $$F_c = \frac{1}{\sqrt m} \sum_{ij} e^{-(d_{ij} - c)^2 / 2 w^2}, \qquad
      F_\infty = \frac{1}{\sqrt m} \sum_{ij} d_{ij} / \ell.$$

    Infinitely smooth, also where like distances tie, so that a kernel on it satisfies
    the Stein identity. Constant on the orbits of `PointCloud(species, dim)` with
    reflections.

    Args:
        species: One label for each particle; particles with the same label are alike.
        reach: The last center $\ell$, in the units of the points.
        num_centers: The number of centers a pair of species.
        width: The width $w$ of a bin; by default the spacing of the centers.
        epsilon: The length below which distances are smoothed.

    Raises:
        ValueError: If there are fewer than two particles or centers, or a length is
            not positive.
    """

    species: tuple[int, ...]
    reach: float
    num_centers: int
    width: float
    epsilon: float

    def __init__(
        self,
        species: Sequence[Hashable],
        *,
        reach: float = 8.0,
        num_centers: int = 24,
        width: float | None = None,
        epsilon: float = 1e-2,
    ):
        name = "PairHistogram"
        self.species = encode_species(species)
        self.epsilon = float(epsilon)
        check_positive(name, meaning="the largest distance distinguished", reach=reach)
        check_integers(name, least=2, num_centers=num_centers)
        self.reach, self.num_centers = float(reach), num_centers
        self.width = float(reach / (num_centers - 1) if width is None else width)
        check_positive(name, meaning="the width of a bin", width=self.width)

    def __call__(self, point: Point) -> Features:
        distances = self.distances(point)
        gaps = self._gaps(distances)
        return self._sums(jnp.exp(-(gaps**2) / 2), distances / self.reach)

    def laplacian(self, point: Point) -> Features:
        d = self.distances(point)
        gaps = self._gaps(d)
        spread = smooth_norm_laplacian(d, point.shape[-1], self.epsilon)
        steep = 1 - (self.epsilon / d) ** 2  # |grad d|^2
        bumps = jnp.exp(-(gaps**2) / 2)
        bent = (gaps**2 - 1) * steep[:, None] / self.width**2
        slope = -gaps * spread[:, None] / self.width
        # Both particles of a pair move, and each contributes the Laplacian in r.
        return 2 * self._sums(bumps * (bent + slope), spread / self.reach)

    def _gaps(self, distances: Float[Array, " pair"]) -> Float[Array, "pair center"]:
        centers = jnp.linspace(0, self.reach, self.num_centers, dtype=distances.dtype)
        return (distances[:, None] - centers[None, :]) / self.width

    def _sums(
        self, bins: Float[Array, "pair center"], tails: Float[Array, " pair"]
    ) -> Features:
        """Return the sums over the pairs of each pair of species."""
        parts = []
        for like in self.blocks():
            # A product, so that the terms are not computed again for each sum.
            num = like.stop - like.start
            equal = jnp.full(num, num**-0.5, bins.dtype)
            parts += [matmul(equal, bins[like]), matmul(equal, tails[like])[None]]
        return jnp.concatenate(parts)
