"""Functions of two neighbors of a particle, and of sums over all of them."""

import itertools
from collections.abc import Hashable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from equistein._check_arguments import check_arguments
from equistein._numbers import check_integers
from equistein._products import einsum, matmul
from equistein._types import Features, Particles, Point, Scalar
from equistein.features._base import derivatives_of, smooth_norm
from equistein.features._pair_features import (
    AbstractPairFeatures,
    as_exponents,
    distance_ranges,
    number_kinds,
    periodic_group,
    taper,
)
from equistein.groups import encode_species, PeriodicCloud

_SMOOTHED = 1e-4  # of the least distance
_DECAYS = (2.0, 4.0, 6.0)  # over the least distance
_SHIFT = 0.01  # of a sum, as roots are steep where there is no neighbor


@check_arguments
class TripletBasis(AbstractPairFeatures):
    r"""Functions of two neighbors of a particle, and powers of sums over them.

    $$F_{sabl}(x) = \sum_{i; jk \in s} \tfrac12 \bigl( \varphi_a(r_{ij})
      \varphi_b(r_{ik}) + \varphi_b(r_{ij}) \varphi_a(r_{ik}) \bigr)\,
      P_l(\cos \theta_{jik})$$

    for each species of the center i and of its neighbors j and k: Gaussians of the
    logarithm of the distance, spread evenly over the data, and Legendre polynomials of
    the angle. As in embedded-atom models of metals, `embedding` adds the powers

    $$F_{stap}(x) = \sum_{i \in s} \rho_{ita}^p, \qquad
      \rho_{ita} = 0.01 + \sum_{j \in t} e^{-a (r_{ij} / r_0 - 1)}$$

    of sums over the neighbors of each species, with decays a of 2, 4 and 6 and the
    least distance $r_0$ of the data. Add all to `PairBasis` by `Concatenated`. Constant
    on the orbits of the same group.

    Args:
        species: One label for each particle; particles with the same label are alike.
        data: Points whose distances are the range of each pair of species.
        num_radial: The number of Gaussians $\varphi$; 0 for no triplets.
        num_angular: The number of polynomials, from $P_0 = 1$ on.
        cutoff: The distance at which all functions end, as $(1 - r^2 / r_c^2)^3$;
            None takes all neighbors as they are, as for a small molecule.
        embedding: The exponents p, such as `(0.5, 2.0, 3.0)`.
        cell: As of `PairBasis`.
    """

    species: tuple[int, ...]
    epsilon: float
    ranges: tuple[tuple[float, float], ...]
    num_radial: int
    num_angular: int
    cutoff: float | None
    embedding: tuple[float, ...]
    cloud: PeriodicCloud | None

    def __init__(
        self,
        species: Sequence[Hashable],
        data: Particles | np.ndarray,
        *,
        num_radial: int = 3,
        num_angular: int = 3,
        cutoff: float | None = None,
        embedding: Sequence[float] = (),
        cell: Any = None,
    ):
        check_integers("TripletBasis", 0, num_radial=num_radial)
        check_integers("TripletBasis", num_angular=num_angular)
        needs = "TripletBasis needs `embedding`"
        self.embedding = as_exponents(needs, num_radial, embedding)
        self.species, self.epsilon, self.cutoff = encode_species(species), 1.0, cutoff
        if len(self.species) < 3:
            raise ValueError("TripletBasis needs `species` of three particles or more.")
        self.cloud = periodic_group("TripletBasis", self.species, cell, cutoff)
        self.num_radial, self.num_angular = num_radial, num_angular
        if num_radial:
            triplets, kinds = self._triplets()
            ends = np.tile(triplets[:, 0], 2), triplets[:, 1:].T.ravel()
            pairs = *ends, np.tile(kinds, 2)
        else:
            pairs = self._pairs()
        self.ranges = distance_ranges(self, data, *pairs, cutoff)
        self.epsilon = _SMOOTHED * min(least for least, _ in self.ranges)

    def __call__(self, point: Point) -> Features:
        self.group(point.shape)
        triplets, kinds = self._triplets()
        values = jax.vmap(self._functions)(point[triplets], self._limits(kinds, point))
        sums = self._summed(values, kinds).ravel()
        return jnp.concatenate([sums, self._embedded(point)])

    def dot(self, coefficients: Float[Array, " feature"], point: Point) -> Scalar:
        r"""Return $c \cdot F(x)$, by the distances of all pairs, each once."""
        embedded, coefficients = self._embedded(point), coefficients.astype(point.dtype)
        triplets, kinds = self._triplets()
        table, more = jnp.split(coefficients, [coefficients.size - embedded.size])
        gaps = self.nearest(point[:, None] - point[None])
        lengths = smooth_norm(gaps, self.epsilon)
        units = gaps / lengths[..., None]
        i, j, k = triplets.T
        cosines = einsum("ijd,ikd->ijk", units, units)[i, j, k]
        limits = self._limits(kinds, point)
        functions = self._products(lengths[i, j], lengths[i, k], cosines, limits)
        # Not a product of stacked functions, which XLA would compute many times.
        columns = table.reshape(len(self.ranges), -1)[kinds].T
        each = (c * f for c, f in zip(columns, functions, strict=True))
        triplet_sum = jnp.sum(sum(each, jnp.zeros(len(kinds), point.dtype)))
        return triplet_sum + matmul(more, embedded)

    def derivatives(self, point: Point) -> tuple[Float[Array, "feature dim"], Features]:
        self.group(point.shape)
        more, more_bends = derivatives_of(self._embedded, point)
        more = more.reshape(-1, point.size)
        triplets, kinds = self._triplets()
        of_one = lambda x, ends: derivatives_of(lambda x: self._functions(x, ends), x)
        slopes, bends = jax.vmap(of_one)(point[triplets], self._limits(kinds, point))
        corners = jnp.asarray(np.eye(len(self.species))[triplets], point.dtype)
        alike = [kinds == kind for kind in range(len(self.ranges))]
        jac = [einsum("tksd,tsn->knd", slopes[at], corners[at]) for at in alike]
        jac = [part.reshape(-1, point.size) for part in jac]
        laplacian = self._summed(bends, kinds).ravel()
        return jnp.concatenate([*jac, more]), jnp.concatenate([laplacian, more_bends])

    def row_size(self, shape: tuple[int, ...]) -> int:
        each = self.num_radial**2 * self.num_angular
        sums = 9 * len(self.embedding) * shape[0] ** 3
        return shape[1] * (6 * each * len(self._triplets()[1]) + sums)

    def _triplets(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the center and the neighbors of each triplet, and its kind."""
        if not self.num_radial:
            return np.zeros((0, 3), int), np.zeros(0, int)
        atoms = range(len(self.species))
        pairs = itertools.combinations(atoms, 2)
        triplets = [(i, *pair) for pair in pairs for i in atoms if i not in pair]
        return np.array(triplets), number_kinds(np.array(self.species)[triplets])

    def _embedded(self, point: Point) -> Features:
        """Return the powers of sums over the neighbors of each particle."""
        if not self.embedding:
            return jnp.zeros(0, point.dtype)
        gaps = self.nearest(point[:, None] - point[None])
        r = smooth_norm(gaps, self.epsilon)[..., None]
        least = min(least for least, _ in self.ranges)
        falls = jnp.exp(-jnp.asarray([[_DECAYS]], r.dtype) * (r / least - 1))
        others = 1 - jnp.eye(len(r), dtype=r.dtype)[..., None]
        falls = falls * taper(r, self.cutoff) * others
        labels = jnp.asarray(np.eye(max(self.species) + 1)[[*self.species]], r.dtype)
        sums = _SHIFT + einsum("ija,jt->ita", falls, labels)
        powers = jnp.stack([sums**power for power in self.embedding])
        return einsum("pita,is->stap", powers, labels).ravel()

    def _limits(self, kinds: np.ndarray, point: Point) -> Float[Array, "triplet 2"]:
        return jnp.asarray(np.array(self.ranges)[kinds], point.dtype)

    def _summed(
        self, values: Float[Array, "triplet function"], kinds: np.ndarray
    ) -> Float[Array, "kind function"]:
        one_hot = jnp.asarray(np.eye(len(self.ranges))[kinds], values.dtype)
        return einsum("tk,ts->sk", values, one_hot)

    def _functions(
        self, triplet: Float[Array, "3 dim"], limits: Float[Array, " 2"]
    ) -> Float[Array, " function"]:
        """Return the functions of a center and two neighbors."""
        gaps = self.nearest(triplet[1:] - triplet[:1])
        lengths = smooth_norm(gaps, self.epsilon)
        cosine = jnp.sum(gaps[0] * gaps[1]) / (lengths[0] * lengths[1])
        functions = self._products(lengths[0], lengths[1], cosine, limits)
        return jnp.array(functions, triplet.dtype)

    def _products(
        self, first: Array, second: Array, cosine: Array, limits: Array
    ) -> list[Array]:
        """Return each function of two lengths and an angle, or of arrays of them."""
        least, most = jnp.log(limits[..., 0]), jnp.log(limits[..., 1])
        spacing = jnp.maximum(most - least, 1e-2) / max(self.num_radial - 1, 1)
        radials = range(self.num_radial)

        def bumps(lengths):
            places = (jnp.log(lengths) - least) / spacing
            end = taper(lengths, self.cutoff)
            return [end * jnp.exp(-((places - a) ** 2) / 2) for a in radials]

        ours, theirs = bumps(first), bumps(second)
        polynomials = [jnp.ones_like(cosine), cosine]
        for n in range(1, self.num_angular - 1):
            last, before = polynomials[-1], polynomials[-2]
            polynomials.append(((2 * n + 1) * cosine * last - n * before) / (n + 1))
        return [
            (ours[a] * theirs[b] + ours[b] * theirs[a]) / 2 * angular
            for a, b in itertools.combinations_with_replacement(radials, 2)
            for angular in polynomials[: self.num_angular]
        ]
