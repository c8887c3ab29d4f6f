"""Molecules drawn by RDKit."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from equistein._gate import gate
from equistein.molecules._rdkit import rdkit


@gate
def drawings(
    mols: Sequence[Any], captions: Sequence[str], columns: int = 8
) -> np.ndarray:
    """Return one picture of the structural formulas of molecules, `(y, x, 3)`.

    Args:
        mols: RDKit molecules; None leaves a place empty.
        captions: What stands below each.
        columns: The number of molecules in a row.

    Raises:
        ValueError: If there is no molecule, or not a caption for each.
        MissingRDKit: If RDKit is not installed.
    """
    chem = rdkit()
    if not len(mols) or len(captions) != len(mols):
        raise ValueError(
            "`drawings` needs `mols`, at least one, and as many `captions`, but got "
            f"{len(mols)} and {len(captions)}."
        )
    flat = []
    for mol in mols:
        plain = chem.Mol() if mol is None else chem.RemoveHs(chem.Mol(mol))
        plain.RemoveAllConformers()
        flat.append(plain)
    picture = chem.Draw.MolsToGridImage(
        flat, molsPerRow=columns, subImgSize=(170, 140), legends=list(captions)
    )
    return np.asarray(picture.convert("RGB"))
