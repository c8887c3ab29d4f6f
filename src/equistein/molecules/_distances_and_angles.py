"""Distances and angles in molecules."""

from collections.abc import Sequence

import numpy as np

from equistein._gate import gate
from equistein.molecules._stability import bond_orders


@gate
def distances(
    symbols: Sequence[str], positions: np.ndarray, first: str, second: str
) -> np.ndarray:
    """Return the distances of all pairs of two elements, in all molecules.

    Args:
        symbols: The element of each atom.
        positions: Their positions, in Angstrom, `(molecule, atom, 3)`.
        first: An element.
        second: Another, or the same.
    """
    i, j = np.triu_indices(len(symbols), k=1)
    names, ends = np.array(list(symbols)), sorted((first, second))
    here = (np.sort([names[i], names[j]], axis=0) == np.array(ends)[:, None]).all(
        axis=0
    )
    gaps = positions[:, i[here]] - positions[:, j[here]]
    return np.linalg.norm(gaps, axis=-1).ravel()


@gate
def angles(
    symbols: Sequence[str], positions: np.ndarray, first: str, middle: str, last: str
) -> np.ndarray:
    """Return the angles at bonded atoms of three elements, in degrees.

    Bonds are those of the table of `bond_orders`.

    Args:
        symbols: The element of each atom, of H, C, N, O and F.
        positions: Their positions, in Angstrom, `(molecule, atom, 3)`.
        first: The element of one end.
        middle: That of the atom at which the angle is.
        last: That of the other end.
    """
    names, num = np.array(list(symbols)), len(symbols)
    bonded = bond_orders(symbols, positions) > 0
    found = []
    for at in np.flatnonzero(names == middle):
        for i in range(num):
            for j in range(num) if first != last else range(i + 1, num):
                if i == j or names[i] != first or names[j] != last:
                    continue
                both = bonded[:, at, i] & bonded[:, at, j]
                a = positions[both, i] - positions[both, at]
                b = positions[both, j] - positions[both, at]
                lengths = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
                cosine = np.sum(a * b, axis=1) / np.maximum(lengths, 1e-12)
                found.append(np.degrees(np.arccos(np.clip(cosine, -1, 1))))
    return np.concatenate(found) if found else np.zeros(0)
