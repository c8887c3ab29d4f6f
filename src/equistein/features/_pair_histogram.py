"""Smooth histograms of the distances between particles."""

from collections.abc import Hashable, Sequence

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from equistein._check_arguments import check_arguments
from equistein._numbers import check_integers, check_positive
from equistein.features._pair_features import AbstractPairSums
from equistein.groups import encode_species


@check_arguments
class PairHistogram(AbstractPairSums):
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

    def functions(self, distances: Array) -> Float[Array, "pair function"]:
        centers = np.append(np.linspace(0, self.reach, self.num_centers), 0)
        gaps = distances[:, None] - jnp.asarray(centers, distances.dtype)[None]
        bins = jnp.exp(-((gaps / self.width) ** 2) / 2)
        # Chosen, not joined, so that the derivatives too are computed in one pass.
        is_last = np.arange(len(centers)) == self.num_centers
        values = jnp.where(is_last[None], distances[:, None] / self.reach, bins)
        kinds = self.kind_of_pairs()
        scale = np.bincount(kinds)[kinds, None] ** -0.5
        return values * jnp.asarray(scale, distances.dtype)
