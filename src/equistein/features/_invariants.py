"""Polynomials and waves averaged over a group, for points in few dimensions."""

import functools
import math
import operator

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from equistein._check_arguments import check_arguments
from equistein._numbers import check_integers
from equistein._products import matmul
from equistein._types import Features, Particles, Point
from equistein.features._base import AbstractFeatures
from equistein.groups import (
    AbstractGroup,
    invariant_polynomials,
    monomials,
    Permutations,
)

_MOST_MONOMIALS = 3_000
_MOST_COPIES = 120  # of a point, over which waves are averaged
_DIRECTIONS = 4_096  # along which the highest degree must not fall
_COSINE = [(-1) ** k / math.factorial(2 * k) for k in reversed(range(14))]


@check_arguments
class Polynomials(AbstractFeatures):
    r"""All invariant polynomials of the coordinates, from degree 1 up.

    A basis of the polynomials p with $p(g x) = p(x)$ for all g in the group, found by
    linear algebra: for `Cyclic(4)` in the plane $x^2 + y^2$, and three of degree 4.

    Args:
        symmetry: The group, which acts linearly.
        degree: The highest degree.
    """

    symmetry: AbstractGroup
    degree: int

    def __check_init__(self):
        check_integers("Polynomials", degree=self.degree)

    def __call__(self, point: Point) -> Features:
        self.group(point.shape)
        x = point.ravel()
        powers = [jnp.ones_like(x)]
        for _ in range(self.degree):
            powers.append(powers[-1] * x)
        table, values = jnp.stack(powers), []
        for exponents, rows in self._invariants(point.shape):
            factors = (table[column, i] for i, column in enumerate(exponents.T))
            terms = functools.reduce(operator.mul, factors)
            values.append(matmul(jnp.asarray(rows, x.dtype), terms))
        return jnp.concatenate(values)

    def unbounded(self, coefficients: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        """Return the highest degree, if it falls in some direction."""
        found, end = np.zeros(len(coefficients), bool), len(coefficients)
        drawn = np.random.default_rng(0).normal(size=(_DIRECTIONS, *shape))
        drawn = np.asarray(self.symmetry.project_points(drawn)).reshape(len(drawn), -1)
        for exponents, rows in reversed(self._invariants(shape)):
            part = slice(end - len(rows), end)
            if np.any(coefficients[part]):
                values = monomials(drawn, exponents) @ rows.T @ coefficients[part]
                found[part] = values.min() < 0
                break
            end = part.start
        return found

    def group(self, shape: tuple[int, ...]) -> AbstractGroup:
        self.symmetry.check_shape(shape)
        num = math.comb(math.prod(shape) + self.degree, self.degree)
        if num > _MOST_MONOMIALS:
            raise ValueError(
                f"{type(self).__name__} of `degree` {self.degree} has {num} monomials "
                f"in points of shape {shape}, more than {_MOST_MONOMIALS}: take a lower"
                " degree, or RandomFeatures."
            )
        return self.symmetry

    def _invariants(self, shape: tuple[int, ...]) -> list:
        return invariant_polynomials(self.symmetry, self.degree, shape)


Quadratic = functools.partial(Polynomials, degree=2)
"""`Polynomials` of degrees 1 and 2, as of the energy of a normal distribution."""


@check_arguments
class RandomFeatures(AbstractFeatures):
    r"""Waves with random frequencies, averaged over a group.

    $$F_m(x) = \sqrt{2 / M} \sum_{g \in G} \cos(\omega_m \cdot g x + b_m) / |G|, \qquad
      \omega_m \sim \mathcal N(0, (\ell_m S)^{-2}),$$

    where the lengths $\ell_m$ are spread evenly over the logarithms of `lengths`, and S
    is the spread of each coordinate. All of them are bounded, so add `Quadratic`, or a
    base that keeps points together. More labels than five are not permuted in all ways:
    then F sums over the labels waves of the coordinates of one label and of the rest.

    Args:
        symmetry: A group of at most 120 elements, `Permutations` of labels with one
            axis in each part, or features, such as `Radius()`, in place of $g x$.
        num: The number M of waves.
        data: Points that the spread S is of; None takes 1.
        lengths: The least and the largest length.
        seed: The source of the frequencies and phases b.

    References:
        Rahimi and Recht (2007), Random features for large-scale kernel machines; Zaheer
        et al. (2017), Deep sets.
    """

    symmetry: AbstractGroup | AbstractFeatures
    num: int
    spread: tuple[float, ...] | None
    lengths: tuple[float, float]
    seed: int

    def __init__(
        self,
        symmetry: AbstractGroup | AbstractFeatures,
        num: int,
        data: Particles | np.ndarray | None = None,
        *,
        lengths: tuple[float, float] = (0.2, 2.0),
        seed: int = 0,
    ):
        check_integers("RandomFeatures", num=num)
        self.symmetry, self.num, self.seed = symmetry, num, seed
        self.lengths = float(lengths[0]), float(lengths[1])
        self.spread = None
        if not 0 < self.lengths[0] <= self.lengths[1]:
            raise ValueError(
                "RandomFeatures needs `lengths`, the least and the largest, positive, "
                f"but got {lengths}."
            )
        is_known = isinstance(symmetry, AbstractFeatures) or (
            isinstance(symmetry, Permutations) and symmetry.labels.are_separate
        )
        order = getattr(symmetry, "order", None) or math.inf
        if not is_known and order > _MOST_COPIES:
            raise ValueError(
                f"RandomFeatures needs `symmetry`, a group of at most {_MOST_COPIES} "
                f"elements or Permutations of separate labels, but got {symmetry!r}: "
                "give features, such as Radius(), or PairBasis for particles."
            )
        if data is not None:
            copies = jax.vmap(self._copies)(jnp.asarray(data, float))
            spread = np.std(np.asarray(copies), axis=(0, 1)).astype(float)
            self.spread = tuple(np.where(spread > 0, spread, 1.0).tolist())

    def __call__(self, point: Point) -> Features:
        self.group(point.shape)
        frequencies, phases = self._waves(point.shape)
        as_array = lambda numbers: jnp.asarray(numbers, point.dtype)
        angles = matmul(self._copies(point), as_array(frequencies.T))
        angles = angles + as_array(phases)[None]
        # Its series takes an eighth of the time of XLA's cosine, on a CPU.
        angles = angles - 2 * jnp.pi * jnp.round(angles / (2 * jnp.pi))
        cosines = jnp.polyval(as_array(_COSINE), angles**2)
        return jnp.mean(cosines, axis=0) * (2 / self.num) ** 0.5

    def group(self, shape: tuple[int, ...]) -> AbstractGroup:
        if isinstance(self.symmetry, AbstractFeatures):
            return self.symmetry.group(shape)
        self.symmetry.check_shape(shape)
        return self.symmetry

    def _copies(self, point: Point) -> Float[Array, "copy width"]:
        """Return the orbit of a point, or each label with what has no label."""
        if isinstance(self.symmetry, AbstractFeatures):
            return self.symmetry(point)[None]
        if (self.symmetry.order or math.inf) <= _MOST_COPIES:
            return self.symmetry.orbit(point).reshape(self.symmetry.order, -1)
        assert isinstance(self.symmetry, Permutations)
        labelled, rest = self.symmetry.labels.blocks(point.size)
        rows = np.concatenate([labelled, np.tile(rest, (len(labelled), 1))], axis=1)
        return point.ravel()[rows]

    def _waves(self, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
        """Return the frequencies, `(wave, width)`, and the phases."""
        drawn = np.random.default_rng(self.seed)
        like = jax.ShapeDtypeStruct(shape, float)
        width = jax.eval_shape(self._copies, like).shape[1]
        if self.spread is not None and len(self.spread) != width:
            raise ValueError(
                f"RandomFeatures of {len(self.spread)} coordinates got points of shape "
                f"{shape} with {width}: give `data` of this shape."
            )
        least, most = np.log(self.lengths)
        lengths = np.exp(drawn.uniform(least, most, size=(self.num, 1)))
        frequencies = drawn.normal(size=(self.num, width)) / lengths
        phases = drawn.uniform(0, 2 * np.pi, size=self.num)
        spread = np.ones(width) if self.spread is None else np.array(self.spread)
        return frequencies / spread, phases
