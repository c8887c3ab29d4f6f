"""Energies of molecules of several formulas, by one network."""

from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Int

from equistein._types import Key, Particles, Point, Scalar
from equistein.energies._base import AbstractEnergy
from equistein.energies._noise import NoiseEnergy, spans
from equistein.groups import Trivial
from equistein.kernels import AbstractKernel, RBF
from equistein.networks import EGNN


class FormulasEnergy(AbstractEnergy):
    """The energies of molecules of several formulas, which share a graph network.

    A point has as many rows as the largest formula has atoms; rows that a formula
    leaves over are zero and do not count. Which formula a molecule has is its label in
    training. By itself this is the energy of the first formula.

    Args:
        energy: The energies of rows of atoms of any kind.
        formulas: The kinds of the atoms of each formula, by number.
    """

    energy: NoiseEnergy
    kinds: Int[Array, "formula atom"]
    formulas: tuple[tuple[int, ...], ...] = eqx.field(static=True)

    def __init__(self, energy: NoiseEnergy, formulas: Sequence[tuple[int, ...]]):
        self.energy = energy
        self.formulas = tuple(formulas)
        num = max(map(len, formulas))
        rows = [[*kinds, *[-1] * (num - len(kinds))] for kinds in formulas]
        self.kinds = jnp.array(rows)

    def __call__(self, point: Point) -> Scalar:
        return self.given(jnp.zeros((), int))(point)

    def given(self, label: Int[Array, ""]) -> NoiseEnergy:
        """Return the energy of one formula, for points with rows left over."""
        return eqx.tree_at(
            lambda energy: energy.network.kinds, self.energy, self.kinds[label]
        )

    def formula(self, label: int) -> NoiseEnergy:
        """Return the energy of one formula, for points without rows left over."""
        network = self.energy.network
        assert isinstance(network, EGNN)
        return eqx.tree_at(
            lambda energy: energy.network, self.energy, network.of(self.formulas[label])
        )

    def group(self, shape: tuple[int, ...]) -> Trivial:
        return Trivial()

    def kernel(self, shape: tuple[int, ...], bandwidth: float | None) -> AbstractKernel:
        return RBF(bandwidth)  # of rows of several formulas; `formula` has its own


def formulas_energy_for(
    key: Key,
    species: Sequence[Sequence[str]],
    data: Particles,
    labels: Int[Array, " particle"],
    *,
    charges: Sequence[Sequence[int]],
    width: int = 64,
    depth: int = 4,
    noise: float | None = None,
) -> FormulasEnergy:
    """Build energies of several formulas.

    Args:
        key: The source of the weights.
        species: The elements of the atoms of each formula.
        data: Molecules, centered, with rows of zeros behind those of small formulas.
        labels: The number of the formula of each.
        charges: The nuclear charges of the atoms of each formula.
        width: The number of units of the network.
        depth: The number of its layers.
        noise: The least noise; None is a 20th of the median distance to the nearest
            atom.

    Raises:
        ValueError: If a number is not positive, or all atoms are at one place.
    """
    known = dict(zip(sum(map(list, species), []), sum(map(list, charges), []),
                     strict=True))  # fmt: skip
    names = list(known)
    formulas = [tuple(names.index(symbol) for symbol in row) for row in species]
    sizes = [len(species[label]) for label in labels.tolist()]
    coordinates = sum(sizes) * data.shape[2]
    scale = (float(jnp.sum(data**2)) / coordinates) ** 0.5
    nearest, farthest = spans(data, sizes)
    network = EGNN(
        names, charges=list(known.values()), dim=data.shape[2], width=width,
        depth=depth, reach=1.25 * farthest, key=key,
    ).of((0,) * data.shape[1])  # fmt: skip
    energy = NoiseEnergy(network, data, nearest / 20 if noise is None else noise)
    lengths = (jnp.asarray(scale, data.dtype), jnp.asarray(2 * scale, data.dtype))
    energy = eqx.tree_at(lambda e: (e.scale, e.noise_max), energy, lengths)
    return FormulasEnergy(energy, formulas)
