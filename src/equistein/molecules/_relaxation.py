"""Molecules relaxed by a force field."""

from typing import Any

import numpy as np

from equistein.molecules._rdkit import rdkit

_MAX_ITERATIONS = 2_000


def relax(mol: Any) -> tuple[np.ndarray, float]:
    """Return the relaxed positions, and how far all atoms moved.

    By the force field MMFF94, which knows small organic molecules.

    Args:
        mol: An RDKit molecule with hydrogens and positions, as `perceive` gives.

    Returns:
        The positions, turned onto those before, and the root mean square distance of
        all atoms to them, in Angstrom; NaN where the force field has no parameters or
        does not converge.

    Raises:
        MissingRDKit: If RDKit is not installed.
    """
    chem = rdkit()
    from rdkit.Chem import rdForceFieldHelpers, rdMolAlign

    before, after = chem.Mol(mol), chem.Mol(mol)
    nothing = np.full((mol.GetNumAtoms(), 3), np.nan), float("nan")
    if not rdForceFieldHelpers.MMFFHasAllMoleculeParams(after):
        return nothing
    if rdForceFieldHelpers.MMFFOptimizeMolecule(after, maxIters=_MAX_ITERATIONS) != 0:
        return nothing
    same = [(index, index) for index in range(mol.GetNumAtoms())]
    moved = rdMolAlign.AlignMol(after, before, atomMap=same)
    return after.GetConformer().GetPositions(), float(moved)
