"""Molecules relaxed by the force field MMFF94."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from equistein._gate import gate
from equistein.molecules._rdkit import rdkit

_MAX_ITERATIONS = 2_000


class Relaxed(NamedTuple):
    """A relaxed molecule; NaN without parameters or convergence.

    Attributes:
        positions: The relaxed positions, aligned with those before.
        moved: The root mean square displacement of all atoms, in Angstrom.
        energy: The energy lost, in kcal/mol.
    """

    positions: np.ndarray
    moved: float
    energy: float


@gate
def relax(mol: Any) -> Relaxed:
    """Relax a molecule to the nearest minimum of its energy.

    Args:
        mol: An RDKit molecule with hydrogens and positions, as `perceive` gives.

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


class Strain(NamedTuple):
    """The changes by relaxation, of each molecule that relaxed.

    Attributes:
        energies: The energy lost, in kcal/mol.
        displacements: The root mean square displacement of the atoms, in Angstrom.
    """

    energies: np.ndarray
    displacements: np.ndarray


@gate
def strain(mols: Sequence[Any], max_num: int = 200) -> Strain:
    r"""Return the strain of molecules by the force field MMFF94.

    $$\Delta E = E(x) - E(x^*), \qquad
      d = \min_g \Bigl(\frac1n \sum_i |x_i - g x^*_i|^2\Bigr)^{1/2}$$

    with $x^*$ the minimum downhill of x, and g rigid motions. At the minimum of another
    energy, such as B3LYP's, it is some kcal/mol: compare with the data. Molecules that
    do not relax are left out.

    Args:
        mols: RDKit molecules, as `perceive` gives.
        max_num: The number of them that are relaxed, the first ones.

    Raises:
        MissingRDKit: If RDKit is not installed.
    """
    relaxed = [relax(mol) for mol in mols[:max_num]]
    pairs = [(one.energy, one.moved) for one in relaxed if np.isfinite(one.energy)]
    return Strain(*np.array(pairs).reshape(-1, 2).T)
