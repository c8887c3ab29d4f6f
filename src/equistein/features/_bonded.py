"""Bond lengths, angles and torsions of a molecule."""

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


@check_arguments
class Bonded(AbstractInternalCoordinates):
    r"""What force fields have of bonds: lengths, angles and torsions.

    $r$ and $r^2$ of each bond, $\theta - 1.9$ and its square of each angle between two
    bonds, and $\cos n \phi$, $\sin n \phi$ of each torsion about a bond, n from 1 to 3.
    Add `PairBasis` by `Concatenated` for atoms that are not bonded. By default all
    atoms are distinct, and these are constant on the orbits of `PointCloud(range(n),
    3)` without reflections, which the sines tell apart; or else on those of `Molecule`.

    Args:
        bonds: The two atoms of each bond, from 0 on.
        atomic_numbers: Of each atom.
        symmetric: Whether functions of bonds, angles and torsions that automorphisms of
            the molecule exchange are summed.

    Raises:
        ValueError: If a bond is not of two of the atoms, or given twice.
    """

    bonds: tuple[tuple[int, int], ...]
    num_atoms: int
    molecule: Molecule | None

    def __init__(
        self,
        bonds: Sequence[tuple[int, int]] | np.ndarray,
        atomic_numbers: Sequence[int] | np.ndarray,
        *,
        symmetric: bool = False,
    ):
        self.num_atoms = len(atomic_numbers)
        self.bonds = tuple(sorted((int(min(b)), int(max(b))) for b in bonds))
        for bond in self.bonds:
            inside = 0 <= bond[0] < bond[1] < self.num_atoms
            if not inside or self.bonds.count(bond) > 1:
                raise ValueError(
                    f"Bonded needs `bonds`, each once and of two of the "
                    f"{self.num_atoms} atoms from 0 on, but got {bond}."
                )
        numbers = tuple(map(int, atomic_numbers))
        self.molecule = Molecule((self.bonds, numbers)) if symmetric else None

    def terms(self) -> list[Term]:
        terms: list[Term] = [
            (_length, np.array(self.bonds)),
            (_angle, self.angles()),
            (lambda atoms: waves(atoms, _PERIODICITIES), self.torsions()),
        ]
        return [term for term in terms if len(term[1])]

    def unbounded(self, coefficients: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        """Return the squares of bonds that have a negative sign."""
        found, num = np.zeros(len(coefficients), bool), len(self.bonds)
        if self.molecule is not None:
            num = len(set(self.molecule.orbits(np.array(self.bonds))))
        num *= 2
        found[1:num:2] = coefficients[1:num:2] < 0
        return found

    def sum_alike(
        self, values: Float[Array, "term *value"], atoms: np.ndarray
    ) -> Float[Array, "feature *value"]:
        if self.molecule is None:
            return values
        kinds = self.molecule.orbits(atoms)
        members = np.unique(kinds)[:, None] == kinds
        return tensordot(jnp.asarray(members, values.dtype), values, axes=1)

    def group(self, shape: tuple[int, ...]) -> AbstractCloud:
        group = self.molecule or PointCloud(range(self.num_atoms), 3, reflections=False)
        group.check_shape(shape)
        return group

    def angles(self) -> np.ndarray:
        """Return the atoms of each angle, the middle one second."""
        near = self._neighbors()
        pairs = [
            (i, j, k)
            for j in range(self.num_atoms)
            for i, k in itertools.combinations(near[j], 2)
        ]
        return np.array(pairs, int).reshape(-1, 3)

    def torsions(self) -> np.ndarray:
        """Return the atoms of each torsion, in order along its three bonds."""
        near = self._neighbors()
        found = [
            (i, j, k, m)
            for j, k in self.bonds
            for i, m in itertools.product(near[j], near[k])
            if i != k and m != j and i != m
        ]
        return np.array(found, int).reshape(-1, 4)

    def _neighbors(self) -> list[list[int]]:
        near: list[list[int]] = [[] for _ in range(self.num_atoms)]
        for i, j in self.bonds:
            near[i].append(j)
            near[j].append(i)
        return near


def _length(ends: Float[Array, "2 3"]) -> Float[Array, " function"]:
    r = length(ends)
    return jnp.concatenate([r, r**2])


def _angle(atoms: Float[Array, "3 3"]) -> Float[Array, " function"]:
    first, second = atoms[0] - atoms[1], atoms[2] - atoms[1]
    # Not an arc cosine, whose slope at 180 degrees is infinite.
    across = smooth_norm(jnp.cross(first, second), SMOOTHED)
    angle = jnp.arctan2(across, jnp.sum(first * second)) - _ANGLE
    return jnp.stack([angle, angle**2])
