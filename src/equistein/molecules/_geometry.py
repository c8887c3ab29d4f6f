"""Bonds, angles and rings of molecules."""

import collections
import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from equistein._gate import gate


@gate
@dataclasses.dataclass(frozen=True)
class Geometry:
    """Bonds, angles and rings of a set of molecules.

    Attributes:
        bonds: The lengths of bonds, in Angstrom, by the two elements, such as CO.
        angles: The angles between bonds, in degrees, by the three elements, such as
            CCO, with the atom at the angle in the middle; without hydrogens.
        rings: The size of each ring.
        num_molecules: How many molecules there are.
    """

    bonds: Mapping[str, np.ndarray]
    angles: Mapping[str, np.ndarray]
    rings: np.ndarray
    num_molecules: int


@gate
def geometry(mols: Sequence[Any]) -> Geometry:
    """Return bonds, angles and rings of RDKit molecules, as of `perceive`."""
    bonds: dict[str, list[float]] = collections.defaultdict(list)
    angles: dict[str, list[float]] = collections.defaultdict(list)
    rings: list[int] = []
    for mol in mols:
        at = mol.GetConformer().GetPositions()
        for bond in mol.GetBonds():
            first, last = bond.GetBeginAtom(), bond.GetEndAtom()
            ends = sorted((first.GetSymbol(), last.GetSymbol()))
            length = np.linalg.norm(at[first.GetIdx()] - at[last.GetIdx()])
            bonds["".join(ends)].append(float(length))
        for atom in mol.GetAtoms():
            around = [a for a in atom.GetNeighbors() if a.GetSymbol() != "H"]
            for pair in itertools.combinations(around, 2):
                first, last = sorted(pair, key=lambda end: end.GetSymbol())
                name = first.GetSymbol() + atom.GetSymbol() + last.GetSymbol()
                arms = at[[first.GetIdx(), last.GetIdx()]] - at[atom.GetIdx()]
                angles[name].append(_angle(*arms))
        rings += map(len, mol.GetRingInfo().AtomRings())
    return Geometry(_arrays(bonds), _arrays(angles), np.array(rings, int), len(mols))


def _angle(first: np.ndarray, last: np.ndarray) -> float:
    lengths = np.linalg.norm(first) * np.linalg.norm(last)
    return float(np.degrees(np.arccos(np.clip(first @ last / lengths, -1, 1))))


def _arrays(lists: Mapping[str, list[float]]) -> dict[str, np.ndarray]:
    """Return arrays, the longest first."""
    names = sorted(lists, key=lambda name: (-len(lists[name]), name))
    return {name: np.array(lists[name]) for name in names}
