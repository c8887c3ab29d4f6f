"""The paper's inference of bonds from positions."""

from collections.abc import Sequence

import numpy as np

from equistein._check_arguments import check_arguments
from equistein.molecules._elements import valences_of

_RING = 1.1  # how much longer a new bond may be than a bond to raise


@check_arguments
def infer_bonds(symbols: Sequence[str], positions: np.ndarray) -> np.ndarray:
    """Return the order of the bond of each pair of atoms, by three greedy steps.

    1. From the heavy atom nearest the origin a tree grows: the heavy atom nearest to
       one in the tree that has a valence left is bonded to it, until none is left.
    2. The hydrogen furthest from its closest heavy atom with a valence left is bonded
       to that one, until none is left.
    3. While two heavy atoms have valences left, the closest two such atoms get one more
       bond; but if the closest two that are not bonded yet are at most 1.1 times as
       far apart, these are bonded instead.

    The graph always fits the valences, but is not always right.

    Args:
        symbols: The element of each atom, of H, C, N, O and F.
        positions: Its position, `(atom, 3)`, with the center at the origin.

    Returns:
        The orders, `(atom, atom)`, 0 where there is no bond.

    Raises:
        ValueError: If an element has no single valence, or a distance is not finite.

    References:
        Jaini, Holdijk and Welling (2021), appendix E.2.
    """
    free = valences_of(symbols)
    heavy = np.array([symbol != "H" for symbol in symbols], bool)
    with np.errstate(all="ignore"):
        distances = np.linalg.norm(positions[:, None] - positions[None], axis=-1)
        from_origin = np.linalg.norm(positions, axis=-1)
    if not (np.isfinite(distances).all() and np.isfinite(from_origin).all()):
        raise ValueError(
            "`infer_bonds` needs `positions` at finite distances, but some are not."
        )
    orders = np.zeros((len(symbols), len(symbols)), int)

    def bond(i: int, j: int) -> None:
        orders[i, j] += 1
        orders[j, i] += 1
        free[[i, j]] -= 1

    if heavy.any():
        _grow_tree(heavy, free, distances, from_origin, bond)
    _bond_hydrogens(heavy, free, distances, bond)
    _fill_valences(heavy, free, distances, orders, bond)
    return orders


def _grow_tree(heavy, free, distances, from_origin, bond) -> None:
    inside = np.zeros(len(heavy), bool)
    inside[np.argmin(np.where(heavy, from_origin, np.inf))] = True
    while (open_ends := inside & (free > 0)).any() and (heavy & ~inside).any():
        allowed = open_ends[:, None] & (heavy & ~inside)[None, :]
        old, new = _closest(distances, allowed)
        bond(old, new)
        inside[new] = True


def _bond_hydrogens(heavy, free, distances, bond) -> None:
    single = ~heavy
    while single.any() and (heavy & (free > 0)).any():
        reach = np.where((heavy & (free > 0))[None, :], distances, np.inf)
        hydrogen = int(np.argmax(np.where(single, reach.min(axis=1), -np.inf)))
        bond(hydrogen, int(np.argmin(reach[hydrogen])))
        single[hydrogen] = False


def _fill_valences(heavy, free, distances, orders, bond) -> None:
    upper = np.triu(np.ones_like(orders, bool), k=1)
    while np.sum(heavy & (free > 0)) >= 2:
        left = heavy & (free > 0)
        allowed = upper & left[:, None] & left[None, :]
        pair = _closest(distances, allowed)
        apart = allowed & (orders == 0)
        if apart.any():
            other = _closest(distances, apart)
            if distances[other] <= _RING * distances[pair]:
                pair = other
        bond(*pair)


def _closest(distances: np.ndarray, allowed: np.ndarray) -> tuple[int, int]:
    flat = int(np.argmin(np.where(allowed, distances, np.inf)))
    return divmod(flat, len(distances))
