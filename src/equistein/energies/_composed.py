"""Energies made from a network, from a known density, and from other energies."""

import math
from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp

from equistein._check_arguments import check_arguments
from equistein._numbers import check_positive
from equistein._types import LogDensity, Point, Scalar
from equistein.energies._base import AbstractEnergy, freeze
from equistein.groups import AbstractGroup, Trivial
from equistein.networks import AbstractNetwork


@check_arguments
class PlainEnergy(AbstractEnergy):
    r"""The energy $E(x) = -f(x)$ of a network with one output."""

    network: AbstractNetwork

    def __call__(self, point: Point) -> Scalar:
        value = self.network(point)
        if value.shape != ():
            raise ValueError(
                "`PlainEnergy` needs `network` with one number as its value, but it is "
                f"of shape {value.shape}: sum it, or take `JointEnergy` for classes."
            )
        return -value

    def group(self, shape: tuple[int, ...]) -> AbstractGroup:
        return self.network.group(shape)


@check_arguments
class KnownEnergy(AbstractEnergy):
    r"""The energy $E(x) = -\log p(x)$ of a density that is known, such as a target's.

    Training leaves it alone. A learned energy that is added to it is its correction:
    `SummedEnergy([(1.0, KnownEnergy(target.log_density, group)), (1.0, energy)])`.

    Args:
        log_density: The log density of one point, up to a constant.
        symmetry: The group that it is invariant under.
    """

    known: LogDensity
    symmetry: AbstractGroup

    def __init__(self, log_density: LogDensity, symmetry: AbstractGroup):
        self.known, self.symmetry = log_density, symmetry

    def __call__(self, point: Point) -> Scalar:
        return -freeze(self.known)(point)

    def group(self, shape: tuple[int, ...]) -> AbstractGroup:
        self.symmetry.check_shape(shape)
        return self.symmetry


@check_arguments
class TemperedEnergy(AbstractEnergy):
    r"""The energy $E(x) / T$: what is sampled at the temperature $T > 0$."""

    energy: AbstractEnergy
    temperature: float = eqx.field(converter=float)

    def __check_init__(self):
        check_positive("TemperedEnergy", temperature=self.temperature)

    def __call__(self, point: Point) -> Scalar:
        return self.energy(point) / self.temperature

    def group(self, shape: tuple[int, ...]) -> AbstractGroup:
        return self.energy.group(shape)


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
    """

    weights: tuple[float, ...] = eqx.field(static=True)
    energies: tuple[AbstractEnergy, ...]
    symmetry: AbstractGroup | None

    def __init__(
        self,
        terms: Sequence[tuple[float, AbstractEnergy]],
        symmetry: AbstractGroup | None = None,
    ):
        self.weights = tuple(float(weight) for weight, _ in terms)
        if not self.weights or not all(map(math.isfinite, self.weights)):
            raise ValueError(
                "SummedEnergy needs `terms`, at least one, of a finite weight and an "
                f"energy, but got the weights {self.weights}."
            )
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
