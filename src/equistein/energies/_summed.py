"""Energies that add up."""

import math
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp

from equistein._check_arguments import check_arguments
from equistein._types import Point, Scalar
from equistein.energies._base import AbstractEnergy
from equistein.groups import AbstractGroup, Trivial


@check_arguments
class SummedEnergy(AbstractEnergy):
    r"""A weighted sum of energies, $E(x) = \sum_i w_i E_i(x)$: a product of densities.

    Such as a learned energy and a known potential that it corrects, or two learned ones
    whose points both find likely. Densities multiply as they are: each keeps its
    temperature, which a weight changes.

    Args:
        terms: Pairs of a weight and an energy.
        symmetry: The group that the sum is invariant under; None is the one that all
            energies share, and no symmetry where they differ.

    Raises:
        ValueError: If there is no term, or one is not such a pair.
    """

    weights: tuple[float, ...] = eqx.field(static=True)
    energies: tuple[AbstractEnergy, ...]
    symmetry: AbstractGroup | None

    def __init__(self, terms: Sequence[Any], symmetry: AbstractGroup | None = None):
        terms = tuple(map(_checked, terms))
        if not terms:
            raise ValueError("SummedEnergy needs `terms`, at least one, but got none.")
        self.weights = tuple(weight for weight, _ in terms)
        self.energies = tuple(energy for _, energy in terms)
        self.symmetry = symmetry

    def __call__(self, point: Point) -> Scalar:
        total = jnp.zeros((), point.dtype)
        for weight, energy in zip(self.weights, self.energies, strict=True):
            total += weight * energy(point)
        return total

    def group(self, shape: tuple[int, ...]) -> AbstractGroup:
        if self.symmetry is not None:
            self.symmetry.check_shape(shape)
            return self.symmetry
        first, *others = (energy.group(shape) for energy in self.energies)
        same = all(bool(eqx.tree_equal(first, other)) for other in others)
        return first if same else Trivial()


def _checked(term: Any) -> tuple[float, AbstractEnergy]:
    """Return a pair of a weight and an energy, or raise `ValueError`."""
    pair = isinstance(term, tuple | list) and len(term) == 2
    weight, energy = term if pair else (math.nan, None)
    number = isinstance(weight, int | float)
    if (
        not number
        or not math.isfinite(weight)
        or not isinstance(energy, AbstractEnergy)
    ):
        raise ValueError(
            "SummedEnergy needs pairs of a finite weight and an energy, such as (1.0, "
            f"energy), but got {term!r}."
        )
    return float(weight), energy
