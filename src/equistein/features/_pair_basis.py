"""Functions of the distances between particles, summed over like pairs."""

import functools
from collections.abc import Hashable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_derivatives import SymbolicZero
from jaxtyping import Array, Float

from equistein._check_arguments import check_arguments
from equistein._numbers import check_integers
from equistein._products import matmul, tensordot
from equistein._types import Features, Particles, Point, Scalar
from equistein.features._base import pair_sum
from equistein.features._pair_features import (
    AbstractPairSums,
    as_exponents,
    distance_ranges,
    periodic_group,
    taper,
)
from equistein.groups import encode_species, PeriodicCloud

_FLOOR = 0.3  # of the least distance: powers are constant below
_POWER_PENALTY = 1e-2
_CORE = 0.1  # kT at the least distance
_SMOOTHED = 1e-4  # of the least distance
_MARGIN, _KNOTS = 6, 32  # of the table: spacings beyond the ends, knots a spacing


@check_arguments
class PairBasis(AbstractPairSums):
    r"""Functions of distance, summed over the pairs of each two species.

    $$F_{sk}(x) = \sum_{ij \in s} \varphi_{sk}(r_{ij}), \qquad
      \varphi_{sk}(r) = e^{-(\log r - c_{sk})^2 / 2 w_s^2} \text{ or } r^p$$

    The centers c are spread evenly over the logarithm of the distances that a pair of
    species has in the data, w is their spacing; below the least distance and above the
    largest, powers alone remain. Negative powers keep particles apart where the data
    say nothing, positive ones hold a cluster together. Where all species are distinct
    each pair has functions of its own. Constant on the orbits of
    `PointCloud(species, dim)` with reflections, in a cell of `PeriodicCloud`.

    Args:
        species: One label for each particle; particles with the same label are alike.
        data: Points whose distances are the range of each pair of species.
        num_gaussians: The number of Gaussians of a pair of species; 0 for none.
        powers: The exponents p; lengths are in units of the least distance for
            negative ones, constant below .3 of it, and of the largest for positive. By
            default -12, and without a cut-off also 2 and 4.
        cutoff: The distance at which all functions end, as $(1 - r^2 / r_c^2)^3$.
        cell: As of `PeriodicCloud`: distances to nearest images, up to a cut-off.
    """

    species: tuple[int, ...]
    epsilon: float
    least: tuple[float, ...]
    most: tuple[float, ...]
    num_gaussians: int
    powers: tuple[float, ...]
    cutoff: float | None
    cloud: PeriodicCloud | None

    def __init__(
        self,
        species: Sequence[Hashable],
        data: Particles | np.ndarray,
        *,
        num_gaussians: int = 12,
        powers: Sequence[float] | None = None,
        cutoff: float | None = None,
        cell: Any = None,
    ):
        check_integers("PairBasis", least=0, num_gaussians=num_gaussians)
        self.species, self.epsilon = encode_species(species), 1.0
        self.num_gaussians, self.cutoff = num_gaussians, cutoff
        if powers is None:
            powers = (-12.0, 2.0, 4.0) if cutoff is None else (-12.0,)
        self.powers = as_exponents("PairBasis needs `powers`", num_gaussians, powers)
        self.cloud = periodic_group("PairBasis", self.species, cell, cutoff)
        ranges = distance_ranges(self, data, *self._pairs(), cutoff)
        self.least, self.most = zip(*ranges, strict=True)
        self.epsilon = _SMOOTHED * min(self.least)

    def dot(self, coefficients: Float[Array, " feature"], point: Point) -> Scalar:
        r"""Return $c \cdot F(x)$; sums of Gaussians come from a table of cubics."""
        return _dot(self, coefficients.astype(point.dtype), point)

    def dot_and_gradient(
        self, coefficients: Float[Array, " feature"], point: Point
    ) -> tuple[Scalar, Point]:
        r"""Return $c \cdot F(x)$ and its gradient, without $\varphi$ of each pair."""
        kinds = np.zeros([len(self.species)] * 2, int)
        first, second, kinds[first, second] = self._pairs()
        kinds = (kinds + kinds.T).ravel() if len(self.least) > 1 else np.zeros(1, int)
        table = coefficients.reshape(len(self.least), -1)
        bumps, powers = jnp.split(table, [self.num_gaussians], axis=1)
        cubics = tensordot(bumps, jnp.asarray(self._cubics(), point.dtype), axes=1)

        def pair_energy(squares):
            distances = jnp.sqrt(squares.ravel() + self.epsilon**2)
            along = jnp.ones_like(distances)
            values, slopes = self._bumps(distances, kinds, cubics)
            rest = lambda r: sum(
                column[kinds] * power
                for column, power in zip(powers.T, self._powers(r, kinds), strict=True)
            )
            if powers.size:
                more, more_slopes = jax.jvp(rest, (distances,), (along,))
                values, slopes = values + more, slopes + more_slopes
            if self.cutoff is not None:
                end_of = lambda r: taper(r, self.cutoff)
                end, end_slopes = jax.jvp(end_of, (distances,), (along,))
                values, slopes = values * end, slopes * end + values * end_slopes
            slopes = slopes / (2 * distances)
            return values.reshape(squares.shape), slopes.reshape(squares.shape)

        return pair_sum(pair_energy, point, self.cloud)

    def _bumps(self, distances, kinds, cubics):
        """Return the sum of the Gaussians at each distance, and its slope."""
        if not self.num_gaussians:
            return jnp.zeros_like(distances), jnp.zeros_like(distances)
        along = jnp.ones_like(distances)
        places = lambda r: (self._places(r, kinds) + _MARGIN) * _KNOTS
        place, steep = jax.jvp(places, (distances,), (along,))
        last = cubics.shape[1] - 1e-2
        inside = jnp.clip(place, 0, last)
        knot = inside.astype(int)
        rows = jnp.asarray(kinds * cubics.shape[1], knot.dtype) + knot
        at = lambda column: column.at[rows].get(mode="promise_in_bounds")
        columns, u = cubics.reshape(-1, 4).T, inside - knot.astype(place.dtype)
        a, b, c, d = map(at, columns)
        values = a + u * (b + u * (c + u * d))
        # From a table of their own: from the same one, XLA would keep what it read.
        b, c, d = (at((i + 1.0) * column) for i, column in enumerate(columns[1:]))
        slopes = (b + u * (c + u * d)) * steep
        return values, jnp.where((place > 0) & (place < last), slopes, 0)

    def _cubics(self) -> np.ndarray:
        """Return the cubics that each Gaussian is between knots, `(k, knot, 4)`."""
        num = self.num_gaussians
        places = np.arange((num - 1 + 2 * _MARGIN) * _KNOTS + 2) / _KNOTS - _MARGIN
        gaps = places - np.arange(num)[:, None]
        values = np.exp(-(gaps**2) / 2)
        slopes = -gaps * values / _KNOTS
        rise, first, second = np.diff(values), slopes[:, :-1], slopes[:, 1:]
        left = 3 * rise - 2 * first - second
        return np.stack([values[:, :-1], first, left, first + second - 2 * rise], -1)

    def unbounded(self, coefficients: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        """Return the powers that lead near zero or far away with a negative sign."""
        table = coefficients.reshape(len(self.least), -1)
        found = np.zeros(table.shape, bool)
        places = list(enumerate(self.powers, self.num_gaussians))
        for sign in (-1, 1) if self.cutoff is None else (-1,):
            of_sign = sorted((sign * p, i) for i, p in places if sign * p > 0)
            for kind, row in enumerate(table):
                leading = [i for _, i in of_sign if row[i] != 0][-1:]
                found[kind, leading] = row[leading] < 0
        return found.ravel()

    def held_coefficients(self, shape: tuple[int, ...]) -> np.ndarray:
        """Return a core for the steepest power, so that others may attract."""
        row = np.zeros(self.num_gaussians + len(self.powers))
        if min(self.powers, default=0) < 0:
            row[self.num_gaussians + int(np.argmin(self.powers))] = _CORE
        return np.tile(row, len(self.least))

    def penalties(self, shape: tuple[int, ...]) -> np.ndarray:
        """Return less for powers: what is beyond the data must stay there."""
        powers = np.full(len(self.powers), _POWER_PENALTY)
        row = np.concatenate([np.ones(self.num_gaussians), powers])
        return np.tile(row, len(self.least))

    def functions(self, distances: Array) -> Float[Array, "pair function"]:
        kinds = self.kind_of_pairs()
        centers = jnp.arange(self.num_gaussians, dtype=distances.dtype)
        gaps = self._places(distances, kinds)[:, None] - centers[None]
        powers = [power[:, None] for power in self._powers(distances, kinds)]
        values = jnp.concatenate([jnp.exp(-(gaps**2) / 2), *powers], axis=1)
        return values * taper(distances, self.cutoff)[:, None]

    def _places(
        self, distances: Float[Array, " pair"], kinds: np.ndarray
    ) -> Float[Array, " pair"]:
        """Return where distances are, in the spacing of the centers from the first."""
        least, most = np.log(self.least)[kinds], np.log(self.most)[kinds]
        spacing = np.maximum(most - least, 1e-6) / max(self.num_gaussians - 1, 1)
        as_array = lambda numbers: jnp.asarray(numbers, distances.dtype)
        return (jnp.log(distances) - as_array(least)) / as_array(spacing)

    def _powers(
        self, distances: Float[Array, " pair"], kinds: np.ndarray
    ) -> list[Float[Array, " pair"]]:
        unit = lambda sizes: jnp.asarray(np.array(sizes)[kinds], distances.dtype)
        core = jnp.maximum(distances / unit(self.least), _FLOOR)
        far = distances / unit(self.most)
        return [(core if power < 0 else far) ** power for power in self.powers]


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def _dot(basis: PairBasis, coefficients: Features, point: Point) -> Scalar:
    return basis.dot_and_gradient(coefficients, point)[0]


def _dot_change(basis, values, changes):
    value, gradient = basis.dot_and_gradient(*values)
    of_coefficients, of_point = changes
    change = jnp.zeros_like(value)
    if not isinstance(of_point, SymbolicZero):
        change += jnp.sum(gradient * of_point)
    if not isinstance(of_coefficients, SymbolicZero):
        change += matmul(basis(values[1]), of_coefficients)
    return value, change


_dot.defjvp(_dot_change, symbolic_zeros=True)
