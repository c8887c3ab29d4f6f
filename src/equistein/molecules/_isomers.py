"""All isomers of a formula, built by RDKit."""

import itertools
from collections.abc import Sequence

import numpy as np

from equistein._check_arguments import check_arguments
from equistein.molecules._elements import VALENCES, valences_of
from equistein.molecules._rdkit import from_bonds, graph_smiles, perceive, rdkit

_MAX_HEAVY = 6
_SEED = 1
_MAX_ITERATIONS = 2_000  # of the relaxation


@check_arguments
def isomers(symbols: Sequence[str]) -> list[str]:
    """Return all isomers of a formula, as sorted canonical SMILES.

    All connected graphs of single, double and triple bonds that fill the valences; many
    are too strained to exist. For C5H8O there are 205, in about 5 seconds.

    Args:
        symbols: The element of each atom, of H, C, N, O and F.

    Raises:
        ValueError: If there are no, or more than 6, atoms other than hydrogen, or
            another element.
        MissingRDKit: If RDKit is not installed.
    """
    heavy = sorted(symbol for symbol in symbols if symbol != "H")
    if not 1 <= len(heavy) <= _MAX_HEAVY or set(heavy) - set(VALENCES):
        raise ValueError(
            f"`isomers` enumerates formulas of 1 to {_MAX_HEAVY} atoms of C, N, O, F "
            f"other than hydrogen, but got {' '.join(heavy)}."
        )
    num_hydrogens = len(symbols) - len(heavy)
    valences = valences_of(heavy).tolist()
    total, odd = divmod(sum(valences) - num_hydrogens, 2)
    if odd or total < len(heavy) - 1:
        return []
    graphs = filter(_is_connected, _fillings(valences, total))
    return sorted({_smiles(heavy, valences, orders) for orders in graphs})


@check_arguments
def embed(smiles: str, symbols: Sequence[str]) -> np.ndarray | None:
    """Return positions of a graph, by ETKDG and relaxed by MMFF94, or None.

    Args:
        smiles: The graph.
        symbols: The elements of its atoms, in the order of the positions.

    Raises:
        ValueError: If the graph is invalid, or has other atoms.
        MissingRDKit: If RDKit is not installed.
    """
    chem = rdkit()
    from rdkit.Chem import rdDistGeom, rdForceFieldHelpers, rdMolAlign

    plain = chem.MolFromSmiles(smiles)
    if plain is None:
        raise ValueError(f"`embed` needs `smiles` of a molecule, but got {smiles!r}.")
    mol = chem.AddHs(plain)
    names = [atom.GetSymbol() for atom in mol.GetAtoms()]
    if sorted(names) != sorted(symbols):
        raise ValueError(
            f"`embed` needs `symbols` of the atoms of {smiles}, {' '.join(names)}, but "
            f"got {' '.join(symbols)}."
        )
    settings = rdDistGeom.ETKDGv3()
    settings.randomSeed = _SEED
    settings.maxIterations = 50
    if rdDistGeom.EmbedMolecule(mol, settings) != 0:
        return None
    embedded = chem.Mol(mol)
    known = rdForceFieldHelpers.MMFFGetMoleculeProperties(mol)
    if known is None:  # no parameters
        return None
    field = rdForceFieldHelpers.MMFFGetMoleculeForceField(mol, known)
    if field.Minimize(maxIts=_MAX_ITERATIONS) != 0:
        return None
    # In the frame of ETKDG's positions, whatever the minimizer turned.
    same = [(index, index) for index in range(len(names))]
    rdMolAlign.AlignMol(mol, embedded, atomMap=same)
    positions = mol.GetConformer().GetPositions()
    order = np.empty(len(names), int)
    order[np.argsort(list(symbols), kind="stable")] = np.argsort(names, kind="stable")
    positions = positions[order]
    # Leave out what relaxed into another molecule.
    return positions if perceive(symbols, positions).smiles == smiles else None


def _fillings(valences: list[int], total: int):
    """Yield the bond orders of all pairs that sum to a total within the valences."""
    pairs = list(itertools.combinations(range(len(valences)), 2))
    orders = np.zeros((len(valences), len(valences)), int)
    free = list(valences)

    def fill(index: int, left: int):
        if left == 0:
            yield orders
            return
        if index == len(pairs):
            return
        i, j = pairs[index]
        for order in range(min(3, free[i], free[j], left) + 1):
            orders[i, j] = orders[j, i] = order
            free[i], free[j] = free[i] - order, free[j] - order
            yield from fill(index + 1, left - order)
            free[i], free[j] = free[i] + order, free[j] + order
        orders[i, j] = orders[j, i] = 0

    yield from fill(0, total)


def _is_connected(orders: np.ndarray) -> bool:
    reached = np.zeros(len(orders), bool)
    reached[0] = True
    for _ in orders:
        reached |= (orders[reached] > 0).any(axis=0)
    return bool(reached.all())


def _smiles(heavy: list[str], valences: list[int], orders: np.ndarray) -> str:
    counts = [v - int(row.sum()) for v, row in zip(valences, orders, strict=True)]
    num = len(heavy) + sum(counts)
    full = np.zeros((num, num), int)
    full[: len(heavy), : len(heavy)] = orders
    at = len(heavy)
    for index, count in enumerate(counts):
        full[index, at : at + count] = full[at : at + count, index] = 1
        at += count
    return graph_smiles(from_bonds([*heavy, *"H" * sum(counts)], full))
