"""Stable atoms and molecules, by a table of bond lengths."""

from collections.abc import Sequence

import numpy as np

from equistein._gate import gate
from equistein.molecules._elements import valences_of

# Lengths in picometers below which there is a bond of order 1, 2 and 3.
_SINGLE = {
    "HH": 84, "CH": 119, "HN": 111, "HO": 106, "FH": 102, "CC": 164, "CN": 157,
    "CO": 153, "CF": 145, "NN": 155, "NO": 150, "FN": 146, "OO": 158, "FO": 152,
    "FF": 152,
}  # fmt: skip
_DOUBLE = {"CC": 139, "CN": 134, "CO": 125, "NN": 130, "NO": 126, "OO": 126}
_TRIPLE = {"CC": 123, "CN": 119, "CO": 116, "NN": 113}


@gate
def bond_orders(symbols: Sequence[str], positions: np.ndarray) -> np.ndarray:
    """Return the order of the bond of each pair of atoms, from its length alone.

    Args:
        symbols: The element of each atom, of H, C, N, O and F.
        positions: Where it is, in Angstrom, `(molecule, atom, 3)` or `(atom, 3)`.

    Raises:
        ValueError: If an element is not in the table.

    References:
        Hoogeboom et al. (2022), Equivariant diffusion for molecule generation in 3D,
        appendix C: typical lengths, with margins of 10, 5 and 3 pm.
    """
    valences_of(symbols)  # raises where the table knows no lengths either
    lengths = 100 * np.linalg.norm(
        positions[..., :, None, :] - positions[..., None, :, :], axis=-1
    )
    orders = np.zeros(lengths.shape, int)
    for table in (_SINGLE, _DOUBLE, _TRIPLE):
        limits = np.array(
            [[table.get("".join(sorted(a + b)), 0) for b in symbols] for a in symbols]
        )
        orders += lengths < limits
    orders[..., np.arange(len(symbols)), np.arange(len(symbols))] = 0
    return orders


@gate
def stable_atoms(symbols: Sequence[str], positions: np.ndarray) -> np.ndarray:
    """Return which atoms have bonds that sum to their valence.

    A molecule is stable if all of its atoms are.

    Args:
        symbols: The element of each atom, of H, C, N, O and F.
        positions: Where it is, in Angstrom, `(molecule, atom, 3)` or `(atom, 3)`.

    Raises:
        ValueError: If an element is not in the table.
    """
    return bond_orders(symbols, positions).sum(axis=-1) == valences_of(symbols)
