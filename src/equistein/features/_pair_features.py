"""Features of the distances between particles."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from equistein._check_arguments import check_arguments
from equistein._numbers import check_positive
from equistein._types import Features, Particles, Point
from equistein.features._base import (
    AbstractFeatures,
    pair_differences,
    smooth_norm,
    smooth_norm_laplacian,
    SMOOTHED,
)
from equistein.groups import encode_species, PointCloud

_CHUNK = 2**22  # distances that are looked at together


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
        """Return the smoothed distance of each pair, those of like pairs together."""
        self.group(point.shape)
        return smooth_norm(pair_differences(point, self._pairs()), self.epsilon)

    def blocks(self) -> list[slice]:
        """Return the slice of the distances of each pair of species."""
        sizes = np.unique(self._kinds(), axis=0, return_counts=True)[1]
        ends = np.cumsum(sizes)
        return [slice(end - size, end) for end, size in zip(ends, sizes, strict=True)]

    def _pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the particles of each pair, in blocks, as gathering is slow."""
        first, second = np.triu_indices(len(self.species), k=1)
        order = np.lexsort(self._kinds().T[::-1])
        return first[order], second[order]

    def _kinds(self) -> np.ndarray:
        """Return the two species of each pair, `(pair, 2)`, the lower one first."""
        labels = np.array(self.species)
        ends = [labels[i] for i in np.triu_indices(len(labels), k=1)]
        return np.sort(np.stack(ends), axis=0).T


def distance_ranges(
    features: AbstractPairFeatures,
    data: Particles | np.ndarray,
    pairs: tuple[np.ndarray, np.ndarray],
    kinds: np.ndarray,
    cutoff: float | None = None,
) -> tuple[tuple[float, float], ...]:
    """Return the least and the largest distance of the pairs of each kind."""
    clouds = np.asarray(data, np.float64)
    features.group(clouds.shape[1:])
    if not len(clouds) or not np.isfinite(clouds).all():
        name = type(features).__name__
        raise ValueError(f"{name} needs `data`, points that are all finite.")
    least, most = np.full(kinds.max() + 1, np.inf), np.zeros(kinds.max() + 1)
    for rows in np.array_split(clouds, max(1, len(clouds) * len(kinds) // _CHUNK)):
        lengths = np.linalg.norm(rows[:, pairs[0]] - rows[:, pairs[1]], axis=-1)
        lengths = np.minimum(lengths, cutoff or np.inf)
        np.minimum.at(least, kinds, lengths.min(axis=0))
        np.maximum.at(most, kinds, lengths.max(axis=0))
    floor = 1e-3 * max(most.max(), 1e-30)  # where particles coincide
    ends = np.maximum(least, floor), np.maximum(most, floor)
    return tuple(zip(*(end.tolist() for end in ends), strict=True))


@check_arguments
class SortedDistances(AbstractPairFeatures):
    r"""All pair distances $\sqrt{r^2 + \epsilon^2}$, sorted within species pairs.

    Constant on the orbits of `PointCloud(species, dim)` with reflections; there are
    $n(n-1)/2$ features. Smooth where particles meet. Where two distances of like pairs
    are equal, the gradient jumps, and a kernel pulled back along F has a small Stein
    bias.

    Args:
        species: One label for each particle; particles with the same label are alike.
        epsilon: The length below which distances are smoothed.
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


@check_arguments
class SortedRowSums(AbstractPairFeatures):
    r"""Each particle's mean distance to the others, sorted within species.

    $$F_i = \frac{1}{n - 1} \sum_{j \ne i} \sqrt{|x_i - x_j|^2 + \epsilon^2}$$

    Unlike sorted distances, these depend on which distances share a particle. Smooth
    except where two like particles tie.

    Args:
        species: One label for each particle; particles with the same label are alike.
        epsilon: The length below which distances are smoothed.
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
