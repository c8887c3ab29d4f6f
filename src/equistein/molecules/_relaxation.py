"""Molecules relaxed by a force field."""

from typing import Any, NamedTuple

import numpy as np

from equistein._gate import gate
from equistein.molecules._rdkit import rdkit

_MAX_ITERATIONS = 2_000


class Relaxed(NamedTuple):
    """A molecule that a force field relaxed.

    Attributes:
        positions: The relaxed positions, turned onto those before.
        moved: The root mean square distance of all atoms to them, in Angstrom.
        energy: The energy lost, in kcal/mol.
    """

    positions: np.ndarray
    moved: float
    energy: float


@gate
def relax(mol: Any) -> Relaxed:
    """Return a molecule in the nearest minimum of its energy, and what that took.

    By the force field MMFF94, which knows small organic molecules.

    Args:
        mol: An RDKit molecule with hydrogens and positions, as `perceive` gives.

    Returns:
        What came of it; NaN where the force field has no parameters or does not
        converge.

    Raises:
        MissingRDKit: If RDKit is not installed.
    """
    chem = rdkit()
    from rdkit.Chem import rdForceFieldHelpers, rdMolAlign

    before, after = chem.Mol(mol), chem.Mol(mol)
    nan = float("nan")
    nothing = Relaxed(np.full((mol.GetNumAtoms(), 3), nan), nan, nan)
    known = rdForceFieldHelpers.MMFFGetMoleculeProperties(after)
    if known is None:
        return nothing
    field = rdForceFieldHelpers.MMFFGetMoleculeForceField(after, known)
    energy = field.CalcEnergy()
    if field.Minimize(maxIts=_MAX_ITERATIONS) != 0:
        return nothing
    lost = energy - field.CalcEnergy()
    same = [(index, index) for index in range(mol.GetNumAtoms())]
    moved = rdMolAlign.AlignMol(after, before, atomMap=same)
    return Relaxed(after.GetConformer().GetPositions(), float(moved), float(lost))
