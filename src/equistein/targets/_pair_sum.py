"""The sum of an energy over all pairs of particles, with its gradient in one pass."""

import functools
from collections.abc import Callable
from typing import TypeAlias

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from equistein._products import matmul
from equistein._types import Point, Scalar

Squares: TypeAlias = Float[Array, "particle particle"]
PairEnergy: TypeAlias = Callable[[Squares], tuple[Squares, Squares]]
"""From squared distances to energies and their slopes, du / d(r^2)."""


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def pair_sum(pair_energy: PairEnergy, point: Point) -> Scalar:
    r"""Return the energy of all pairs, $\sum_{i<j} u(|x_i - x_j|^2)$.

    Its gradient is $2 \sum_j u'(r_{ij}^2) (x_i - x_j)$. All ordered pairs are taken in
    a dense square, one coordinate at a time: no indexing, whose derivative is a
    scatter, and no distance, only its square. The sums over j are one product of
    matrices. Value and gradient come in one pass, and can be differentiated again.

    The error of the gradient is what rounding the coordinates makes of it, so that
    clouds should not be far from the origin.

    Args:
        pair_energy: From squared distances to energies and their slopes in it,
            elementwise. Finite at 1, which stands on the diagonal and is not counted.
        point: The particles.
    """
    return _value_and_gradient(pair_energy, point)[0]


@pair_sum.defjvp
def _push(
    pair_energy: PairEnergy, primals: tuple[Point], tangents: tuple[Point]
) -> tuple[Scalar, Scalar]:
    value, gradient = _value_and_gradient(pair_energy, primals[0])
    return value, jnp.sum(gradient * tangents[0])


def _value_and_gradient(pair_energy: PairEnergy, point: Point) -> tuple[Scalar, Point]:
    num, dim = point.shape
    squares = sum(
        (point[:, axis][:, None] - point[:, axis][None, :]) ** 2 for axis in range(dim)
    )
    same = jnp.eye(num, dtype=bool)
    energies, slopes = pair_energy(jnp.where(same, 1, squares))
    energies, slopes = (jnp.where(same, 0, terms) for terms in (energies, slopes))
    ones = jnp.ones((num, 1), point.dtype)
    sums = matmul(slopes, jnp.concatenate([point, ones], 1))
    gradient = 2 * (sums[:, dim:] * point - sums[:, :dim])
    return jnp.sum(energies) / 2, gradient
