"""Features of the distances between particles."""

import abc
import dataclasses
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from equistein._check_arguments import check_arguments
from equistein._numbers import check_integers, check_positive
from equistein._products import matmul
from equistein._types import Features, Particles, Point
from equistein.features._base import (
    AbstractFeatures,
    MAX_PRODUCT,
    pair_differences,
    smooth_norm,
    smooth_norm_laplacian,
    SMOOTHED,
)
from equistein.groups import encode_species, PeriodicCloud, PointCloud

_CHUNK = 2**22  # distances that are looked at together


class AbstractPairFeatures(AbstractFeatures):
    """Features of smoothed distances, constant on the orbits of a cloud."""

    species: eqx.AbstractVar[tuple[int, ...]]
    epsilon: eqx.AbstractVar[float]
    # Of features without such a field: there is no cell.
    cloud = None

    def __check_init__(self):
        name = type(self).__name__
        check_positive(name, meaning=SMOOTHED, epsilon=self.epsilon)
        if len(self.species) < 2:
            raise ValueError(
                f"{name} needs `species` of at least two particles, but got "
                f"{len(self.species)}."
            )

    def group(self, shape: tuple[int, ...]) -> PointCloud | PeriodicCloud:
        dim = shape[-1] if shape else 1
        group = self.cloud or PointCloud(self.species, dim)
        group.check_shape(shape)
        return group

    def distances(self, point: Point) -> Float[Array, " pair"]:
        """Return the smoothed distance of each pair, those of like pairs together."""
        return smooth_norm(self._gaps(point), self.epsilon)

    def blocks(self) -> list[slice]:
        """Return the slice of the distances of each pair of species."""
        ends = np.cumsum(np.bincount(self.kind_of_pairs())).tolist()
        return [slice(*block) for block in itertools.pairwise([0, *ends])]

    def kind_of_pairs(self) -> np.ndarray:
        """Return which pair of species each distance is of."""
        return self._pairs()[2]

    def nearest(self, gaps: Float[Array, "*batch dim"]) -> Float[Array, "*batch dim"]:
        """Return differences to the nearest images, if there is a cell."""
        return gaps if self.cloud is None else self.cloud.minimum_image(gaps)

    def _gaps(self, point: Point) -> Float[Array, "pair dim"]:
        self.group(point.shape)
        return self.nearest(pair_differences(point, self._pairs()[:2]))

    def _pairs(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the particles and the kind of each pair, in blocks of each kind."""
        first, second = np.triu_indices(len(self.species), k=1)
        kinds = number_kinds(np.array(self.species)[np.stack([first, second])].T)
        order = np.argsort(kinds, kind="stable")  # as gathering is slow
        return first[order], second[order], kinds[order]


class AbstractPairSums(AbstractPairFeatures):
    """Functions of distance, summed over the pairs of each two species."""

    @abc.abstractmethod
    def functions(self, distances: Array) -> Float[Array, "pair function"]:
        """Return each function at the distance of each pair."""

    def __call__(self, point: Point) -> Features:
        return self._sums(self.functions(self.distances(point)))

    def jacobian(self, point: Point) -> Float[Array, "feature dim"]:
        return self.derivatives(point)[0]

    def derivatives(self, point: Point) -> tuple[Float[Array, "feature dim"], Features]:
        """Return the Jacobian and the Laplacian, by derivatives in each distance."""
        gaps, kinds = self._gaps(point), self.blocks()
        r = smooth_norm(gaps, self.epsilon)
        ones = jnp.ones_like(r)
        slope = lambda at: jax.jvp(self.functions, (at,), (ones,))[1]
        slopes, bends = jax.jvp(slope, (r,), (ones,))
        spread = smooth_norm_laplacian(r, point.shape[-1], self.epsilon)
        steep = 1 - (self.epsilon / r) ** 2  # |grad r|^2
        # Both particles of a pair move, and each contributes the Laplacian in r.
        bends = 2 * (bends * steep[:, None] + slopes * spread[:, None])
        first, second, kind = self._pairs()
        if len(point) > MAX_PRODUCT:
            units = slopes[:, :, None] * (gaps / r[:, None])[:, None]
            sums = jnp.zeros((len(kinds), len(point), *units.shape[1:]), units.dtype)
            sums = sums.at[kind, first].add(units).at[kind, second].add(-units)
            jac = jnp.moveaxis(sums, 2, 1).reshape(-1, point.size)
            return jac, self._sums(bends)
        own = np.eye(len(point))
        signs = jnp.asarray(own[first] - own[second], r.dtype)
        units = (signs[..., None] * (gaps / r[:, None])[:, None]).reshape(len(r), -1)
        if len(kinds) == len(r):  # each pair has its own functions
            jac = slopes[:, :, None] * units[:, None, :]
            return jac.reshape(-1, point.size), bends.ravel()
        jac = jnp.concatenate([matmul(slopes[kind].T, units[kind]) for kind in kinds])
        return jac, self._sums(bends)

    def _sums(self, terms: Float[Array, "pair function"]) -> Features:
        """Return the sums over the pairs of each two species."""
        kinds = self.blocks()
        if len(kinds) == len(terms):
            return terms.ravel()
        # Products, so that the terms are not computed again for each sum.
        total = lambda part: matmul(jnp.ones(len(part), part.dtype), part)
        return jnp.concatenate([total(terms[kind]) for kind in kinds])


def number_kinds(labels: np.ndarray) -> np.ndarray:
    """Return the number of each row of labels, in whatever order its last two are."""
    names = np.concatenate([labels[:, :-2], np.sort(labels[:, -2:], axis=1)], axis=1)
    return np.unique(names, axis=0, return_inverse=True)[1].reshape(-1)


def taper(distances: Array, cutoff: float | None) -> Array:
    """Return $(1 - r^2 / r_c^2)^3$ up to the cut-off, 0 beyond; 1 without one."""
    if cutoff is None:
        return jnp.ones_like(distances)
    return jnp.maximum(1 - (distances / cutoff) ** 2, 0) ** 3


def distance_ranges(
    features: AbstractPairFeatures, data: Particles | np.ndarray, first: np.ndarray,
    second: np.ndarray, kinds: np.ndarray, cutoff: float | None = None,
) -> tuple[tuple[float, float], ...]:  # fmt: skip
    """Return the least and the largest distance of the pairs of each kind."""
    clouds = np.asarray(data, np.float64)
    features.group(clouds.shape[1:])
    if not len(clouds) or not np.isfinite(clouds).all():
        name = type(features).__name__
        raise ValueError(f"{name} needs `data`, points that are all finite.")
    least, most = np.full(kinds.max() + 1, np.inf), np.zeros(kinds.max() + 1)
    for rows in np.array_split(clouds, max(1, len(clouds) * len(kinds) // _CHUNK)):
        gaps = rows[:, first] - rows[:, second]
        if features.cloud is not None:
            gaps = np.asarray(features.nearest(jnp.asarray(gaps)))
        lengths = np.linalg.norm(gaps, axis=-1)
        lengths = np.minimum(lengths, cutoff or np.inf)
        np.minimum.at(least, kinds, lengths.min(axis=0))
        np.maximum.at(most, kinds, lengths.max(axis=0))
    floor = 1e-3 * max(most.max(), 1e-30)  # where particles coincide
    ends = np.maximum(least, floor), np.maximum(most, floor)
    return tuple(zip(*(end.tolist() for end in ends), strict=True))


def periodic_group(
    owner: str, species: tuple[int, ...], cell: Any, cutoff: float | None
) -> PeriodicCloud | None:
    """Return the group of particles in a cell; raise unless the cut-off is valid."""
    check_positive(owner, cutoff=1.0 if cutoff is None else cutoff)
    if cell is None:
        return None
    cloud = PeriodicCloud(species, cell)
    cloud.check_cutoff(owner, cutoff)
    return cloud


def as_exponents(needs: str, others: int, powers: Sequence[Any]) -> tuple[Any, ...]:
    """Return exponents, whole ones as integers: their powers are many times as fast."""
    if 0 in powers or not len(powers) + others:
        raise ValueError(f"{needs}, other than 0, or other terms, but got {powers!r}.")
    return tuple(int(p) if float(p).is_integer() else float(p) for p in powers)


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
        # Of both particles of a pair.
        return 2 * smooth_norm_laplacian(self(point), point.shape[-1], self.epsilon)


@check_arguments
class SortedRowSums(AbstractPairFeatures):
    r"""Each particle's mean distance to the others, sorted within species.

    $$F_i = \frac{1}{n - 1} \sum_{j \ne i} \sqrt{|x_i - x_j|^2 + \epsilon^2}$$

    Unlike sorted distances, these depend on which distances share a particle. Smooth
    except where two like particles tie. The arguments are those of `SortedDistances`.
    """

    species: tuple[int, ...] = eqx.field(converter=encode_species)
    epsilon: float = eqx.field(default=1e-2, converter=float)

    def __call__(self, point: Point) -> Features:
        return self._sorted(point, lambda distances: distances)

    def laplacian(self, point: Point) -> Features:
        dim = point.shape[-1]
        of_one = lambda r: smooth_norm_laplacian(r, dim, self.epsilon)
        return 2 * self._sorted(point, of_one)  # of both particles of a pair

    def _sorted(self, point: Point, function: Callable[[Array], Array]) -> Features:
        """Return means of a function of distances, in the order of their own means."""
        self.group(point.shape)
        distances = smooth_norm(point[:, None] - point[None, :], self.epsilon)
        others = 1 - jnp.eye(len(point), dtype=point.dtype)
        mean = lambda values: jnp.sum(values * others, axis=1) / (len(point) - 1)
        order = jnp.lexsort((mean(distances), np.array(self.species)))
        return mean(function(distances))[order]


@check_arguments
class PairHistogram(AbstractPairSums):
    r"""A smooth histogram of the distances of each pair of species.

    With $d_{ij} = \sqrt{r_{ij}^2 + \epsilon^2}$, for the m pairs of two species and
    centers $c$ spread evenly over $[0, \ell]$,

    $$F_c = \frac{1}{\sqrt m} \sum_{ij} e^{-(d_{ij} - c)^2 / 2 w^2}, \qquad
      F_\infty = \frac{1}{\sqrt m} \sum_{ij} d_{ij} / \ell.$$

    Infinitely smooth, also where like distances tie, so that a kernel on it satisfies
    the Stein identity. Constant on orbits of `PointCloud(species, dim)`, reflections
    included. The other arguments are those of `SortedDistances`.

    Args:
        reach: The last center $\ell$, in the units of the points.
        num_centers: The number of centers a pair of species.
        width: The width $w$ of a bin; by default the spacing of the centers.
    """

    species: tuple[int, ...] = eqx.field(converter=encode_species)
    _: dataclasses.KW_ONLY
    reach: float = eqx.field(default=8.0, converter=float)
    num_centers: int = 24
    width: float | None = None
    epsilon: float = eqx.field(default=1e-2, converter=float)

    def __check_init__(self):
        width = 1.0 if self.width is None else self.width
        check_positive("PairHistogram", reach=self.reach, width=width)
        check_integers("PairHistogram", least=2, num_centers=self.num_centers)

    def functions(self, distances: Array) -> Float[Array, "pair function"]:
        centers = np.append(np.linspace(0, self.reach, self.num_centers), 0)
        gaps = distances[:, None] - jnp.asarray(centers, distances.dtype)[None]
        width = self.width or self.reach / (self.num_centers - 1)
        bins = jnp.exp(-((gaps / width) ** 2) / 2)
        # Chosen, not joined, so that the derivatives too are computed in one pass.
        is_last = np.arange(len(centers)) == self.num_centers
        values = jnp.where(is_last[None], distances[:, None] / self.reach, bins)
        kinds = self.kind_of_pairs()
        scale = np.bincount(kinds)[kinds, None] ** -0.5
        return values * jnp.asarray(scale, distances.dtype)
