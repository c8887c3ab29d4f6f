"""Which hand a chiral molecule has."""

import collections
from collections.abc import Sequence

import numpy as np

from equistein.molecules._rdkit import connected, has_rdkit, rdkit

_REACH = (1.25, 1.4, 1.1)  # covalent radii that a bond spans; strained, others do
_MOST = 500  # molecules that are looked at
_FEWEST = 10  # of one hand, that tell that there is no other

Pair = tuple[str, str]


def stereo_smiles(
    symbols: Sequence[str], positions: np.ndarray, reach: float = _REACH[0]
) -> Pair:
    """Return SMILES with stereo centers of a molecule, and of its mirror image.

    Single bonds join close atoms, whatever the valences, so that a strained molecule
    has a hand as well. Both are the same if the molecule is achiral.
    """
    chem, mol = rdkit(), connected(symbols, positions, reach)
    for atom in mol.GetAtoms():  # three bonds leave a neutral one no lone pair
        atom.SetFormalCharge(atom.GetSymbol() in ("S", "Se") and atom.GetDegree() == 3)
    mol.UpdatePropertyCache(strict=False)
    chem.FastFindRings(mol)
    chem.AssignStereochemistryFrom3D(mol)
    smiles = chem.MolToSmiles(mol)
    for atom in mol.GetAtoms():
        atom.InvertChirality()
    return smiles, chem.MolToSmiles(mol)


def main_hand(
    symbols: Sequence[str], molecules: np.ndarray
) -> tuple[Pair, float] | None:
    """Return the `stereo_smiles` of most molecules, and the fraction of that hand.

    None if they are achiral or of several kinds, few, or RDKit is not installed.
    """
    if not has_rdkit() or not len(molecules):
        return None
    some = molecules[:: -(-len(molecules) // _MOST)]
    counts = collections.Counter(stereo_smiles(symbols, each) for each in some)
    pair = counts.most_common(1)[0][0]
    num, num_mirrored = counts[pair], counts[pair[1], pair[0]]
    # Strained molecules may have other bonds, and count for neither hand.
    if pair[0] == pair[1] or num + num_mirrored < max(_FEWEST, 0.8 * len(some)):
        return None
    return pair, num / (num + num_mirrored)


def hands(symbols: Sequence[str], molecules: np.ndarray, pair: Pair) -> np.ndarray:
    """Return 1 for each molecule with these centers, -1 for a mirror image, else 0."""
    sign_of = {pair[::-1]: -1, pair: 1}
    seen = lambda molecule: (stereo_smiles(symbols, molecule, r) for r in _REACH)
    signs = [next((sign_of[p] for p in seen(m) if p in sign_of), 0) for m in molecules]
    return np.array(signs, int)
