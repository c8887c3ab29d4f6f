"""Molecules with positions, made by RDKit from their bonds."""

import numpy as np


def embed(smiles, symbols):
    """Return positions of atoms with this graph, by ETKDG and MMFF94."""
    from rdkit import Chem
    from rdkit.Chem import AllChem

    mol = Chem.AddHs(Chem.MolFromSmiles(smiles))
    assert AllChem.EmbedMolecule(mol, randomSeed=1) == 0
    assert AllChem.MMFFOptimizeMolecule(mol, maxIters=2_000) == 0
    names = [atom.GetSymbol() for atom in mol.GetAtoms()]
    assert sorted(names) == sorted(symbols)
    order = np.empty(len(names), int)
    order[np.argsort(list(symbols), kind="stable")] = np.argsort(names, kind="stable")
    return mol.GetConformer().GetPositions()[order]
