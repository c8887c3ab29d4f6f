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

    The graph of H, C, N, O and F always fits the valences, but is not always right.
    The positions have their center at the origin; orders are 0 where there is no bond.

    References:
        Jaini, Holdijk and Welling (2021), appendix E.2.
    """
    free = valences_of(symbols)
    heavy = np.array([symbol != "H" for symbol in symbols], bool)
    with np.errstate(all="ignore"):
        distances = np.linalg.norm(positions[:, None] - positions[None], axis=-1)
        from_origin = np.linalg.norm(positions, axis=-1)
    if not (np.isfinite(distances).all() and np.isfinite(from_origin).all()):
        raise ValueError("`positions` must be at finite distances, but some are not.")
    orders = np.zeros((len(symbols), len(symbols)), int)

    def bond(i: int, j: int) -> None:
        orders[i, j] += 1
        orders[j, i] += 1
        free[[i, j]] -= 1

    def closest(allowed: np.ndarray) -> tuple[int, int]:
        flat = int(np.argmin(np.where(allowed, distances, np.inf)))
        return divmod(flat, len(distances))

    tree = np.zeros(len(heavy), bool)
    if heavy.any():
        tree[np.argmin(np.where(heavy, from_origin, np.inf))] = True
    while (allowed := np.outer(tree & (free > 0), heavy & ~tree)).any():
        old, new = closest(allowed)
        bond(old, new)
        tree[new] = True
    single = ~heavy
    while single.any() and (open_ends := heavy & (free > 0)).any():
        reach = np.where(open_ends[None, :], distances, np.inf)
        hydrogen = int(np.argmax(np.where(single, reach.min(axis=1), -np.inf)))
        bond(hydrogen, int(np.argmin(reach[hydrogen])))
        single[hydrogen] = False
    upper = np.triu(np.ones_like(orders, bool), k=1)
    while np.sum(open_ends := heavy & (free > 0)) >= 2:
        allowed = upper & np.outer(open_ends, open_ends)
        pair, new_pair = closest(allowed), closest(allowed & (orders == 0))
        if allowed[new_pair] and distances[new_pair] <= _RING * distances[pair]:
            pair = new_pair
        bond(*pair)
    return orders
