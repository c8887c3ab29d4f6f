"""All isomers of a formula, as graphs."""

import itertools
from collections.abc import Iterator, Sequence

import numpy as np
from scipy.sparse.csgraph import connected_components

from equistein.molecules import from_bonds, graph_smiles, VALENCES

_MAX_HEAVY = 6


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
    valences = [VALENCES[symbol] for symbol in heavy]
    total, odd = divmod(sum(valences) - (len(symbols) - len(heavy)), 2)
    if odd or total < len(heavy) - 1:
        return []
    found = set()
    for orders in _fillings(valences, total):
        if connected_components(orders)[0] == 1:
            left = np.array(valences) - orders.sum(axis=1)
            hydrogens = np.repeat(np.eye(len(heavy), dtype=int), left, axis=1)
            nothing = np.zeros((left.sum(),) * 2, int)
            full = np.block([[orders, hydrogens], [hydrogens.T, nothing]])
            found.add(graph_smiles(from_bonds([*heavy, *"H" * left.sum()], full)))
    return sorted(found)


def _fillings(valences: list[int], total: int) -> Iterator[np.ndarray]:
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
