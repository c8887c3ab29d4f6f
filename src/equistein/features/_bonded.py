"""Bond lengths, angles and torsions of a molecule, and the chirality of its atoms."""

import itertools
from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from equistein._check_arguments import check_arguments
from equistein._products import tensordot
from equistein.features._base import smooth_norm
from equistein.features._internal_coordinates import (
    AbstractInternalCoordinates,
    length,
    SMOOTHED,
    Term,
    waves,
)
from equistein.groups import AbstractCloud, Molecule, PointCloud

_ANGLE = 1.9  # radians, that of most angles
_PERIODICITIES = 3
_HARMONIC_PENALTY = 1e-6


@check_arguments
class Bonded(AbstractInternalCoordinates):
    r"""What force fields have of bonds: lengths, angles and torsions.

    $r$ and $r^2$ of each bond, $\theta - 1.9$ and its square of each angle between two
    bonds, $v$ and $v^2$ of each atom with three or four neighbors that differ, and
    $\cos n \phi$, $\sin n \phi$ of each torsion about a bond, n from 1 to 3. The volume
    $v$, which three unit vectors along the bonds span, is 0 in a plane, and its sign
    tells a chiral center from its mirror image. Add `PairBasis` by `Concatenated` for
    atoms that are not bonded. By default all atoms are distinct: constant on the orbits
    of `PointCloud(range(n), 3)`.

    Args:
        bonds: The two atoms of each bond, from 0 on.
        atomic_numbers: Of each atom.
        symmetric: Whether functions of what automorphisms of the bonds exchange are
            summed: constant on the orbits of `Molecule`.
        reflections: Whether sines and $v$, which tell mirror images apart, are left
            out.
    """

    molecule: Molecule
    symmetric: bool

    def __init__(
        self,
        bonds: Sequence[tuple[int, int]] | np.ndarray,
        atomic_numbers: Sequence[int] | np.ndarray,
        *,
        symmetric: bool = False,
        reflections: bool = False,
    ):
        topology = tuple(bonds), tuple(atomic_numbers)
        self.molecule = Molecule(topology, reflections=reflections)
        self.symmetric = symmetric

    def terms(self) -> list[Term]:
        step = 2 if self.molecule.reflections else 1
        bonds = np.array(self.molecule.bonds)
        terms: list[Term] = [
            (lambda ends: jnp.append(length(ends), length(ends) ** 2), bonds),
            (_angle, self.angles()),
            (lambda atoms: _volume(atoms)[step - 1 :], self.centers()),
            (lambda atoms: waves(atoms, _PERIODICITIES)[::step], self.torsions()),
        ]
        return [term for term in terms if len(term[1])]

    def unbounded(self, coefficients: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        """Return the squares of bonds that have a negative sign."""
        found = np.zeros(len(coefficients), bool)
        num = 2 * self._num_kinds(np.array(self.molecule.bonds))
        found[1:num:2] = coefficients[1:num:2] < 0
        return found

    def penalties(self, shape: tuple[int, ...]) -> np.ndarray:
        """Return almost none for all but torsions: a ridge would widen the others."""
        step = 2 if self.molecule.reflections else 1
        num = self._num_kinds(self.torsions()) * 2 * _PERIODICITIES // step
        found = np.ones(self.size(shape))
        found[: len(found) - num] = _HARMONIC_PENALTY
        return found

    def _num_kinds(self, atoms: np.ndarray) -> int:
        """Return how many features each function of these atoms has."""
        return len(self.sum_alike(jnp.zeros(len(atoms)), atoms)) if len(atoms) else 0

    def sum_alike(
        self, values: Float[Array, "term *value"], atoms: np.ndarray
    ) -> Float[Array, "feature *value"]:
        if not self.symmetric:
            return values
        kinds = self.molecule.orbits(atoms)
        members = np.unique(kinds)[:, None] == kinds
        return tensordot(jnp.asarray(members, values.dtype), values, axes=1)

    def group(self, shape: tuple[int, ...]) -> AbstractCloud:
        self.molecule.check_shape(shape)
        if self.symmetric:
            return self.molecule
        return PointCloud(range(shape[0]), 3, reflections=self.molecule.reflections)

    def angles(self) -> np.ndarray:
        """Return the atoms of each angle, the middle one second."""
        near = enumerate(self.molecule.neighbors())
        pairs = ((j, itertools.combinations(others, 2)) for j, others in near)
        found = [(i, j, k) for j, ends in pairs for i, k in ends]
        return np.array(found, int).reshape(-1, 3)

    def centers(self) -> np.ndarray:
        """Return each atom with three or four neighbors that differ, and three."""
        kinds = self.molecule.species
        alike = kinds if self.symmetric else range(len(kinds))
        found = [
            (i, *sorted(near, key=lambda j: alike[j])[:3])
            for i, near in enumerate(self.molecule.neighbors())
            if 3 <= len({alike[j] for j in near}) == len(near) <= 4
        ]
        return np.array(found, int).reshape(-1, 4)

    def torsions(self) -> np.ndarray:
        """Return the atoms of each torsion, in order along its three bonds."""
        near = self.molecule.neighbors()
        found = [
            (i, j, k, m)
            for j, k in self.molecule.bonds
            for i, m in itertools.product(near[j], near[k])
            if i != k and m != j and i != m
        ]
        return np.array(found, int).reshape(-1, 4)


def _angle(atoms: Float[Array, "3 3"]) -> Float[Array, " function"]:
    first, second = atoms[0] - atoms[1], atoms[2] - atoms[1]
    # Not an arc cosine, whose slope at 180 degrees is infinite.
    across = smooth_norm(jnp.cross(first, second), SMOOTHED)
    angle = jnp.arctan2(across, jnp.sum(first * second)) - _ANGLE
    return jnp.stack([angle, angle**2])


def _volume(atoms: Float[Array, "4 3"]) -> Float[Array, " function"]:
    ends = atoms[1:] - atoms[:1]
    units = ends / smooth_norm(ends, SMOOTHED)[:, None]
    volume = jnp.sum(units[0] * jnp.cross(units[1], units[2]))
    return jnp.stack([volume, volume**2])
