"""The molecules that are learned from and compared with, and what is measured."""

import dataclasses
import functools
from collections.abc import Sequence

import numpy as np
from scipy.stats import wasserstein_distance

from equistein.data import DATA_VARIABLE, DataError, published_clouds, qm9_isomers
from equistein.metrics import bond_orders, score_molecules
from equistein.molecules import perceive, symbols_of


@dataclasses.dataclass(frozen=True)
class Reference:
    """The molecules of one formula.

    Attributes:
        symbols: The element of each atom.
        train: The positions that are learned from, `(molecule, atom, 3)`.
        others: Those that are held out.
        graphs: The SMILES of all molecules.
        other_graphs: Those of the others.
    """

    symbols: tuple[str, ...]
    train: np.ndarray
    others: np.ndarray
    graphs: frozenset[str]
    other_graphs: frozenset[str]

    @property
    def everything(self) -> np.ndarray:
        """The positions of all molecules."""
        return np.concatenate([self.train, self.others])

    def measure(self, symbols: Sequence[str], positions: np.ndarray) -> dict:
        """Return the scores of molecules, whose elements may be in another order."""
        positions = np.asarray(positions, np.float64)
        perceived = [perceive(symbols, molecule) for molecule in positions]
        numbers = score_molecules(symbols, positions, self.graphs, perceived)
        found = {seen.smiles for seen in perceived}
        numbers["num_held_out"] = len(found & self.other_graphs)
        for name, measured in GEOMETRY.items():
            mine = measured(symbols, positions)
            theirs = measured(self.symbols, self.everything)
            if not (len(mine) and len(theirs)):
                mine = theirs = np.full(1, np.nan)
            numbers[f"w1_{name}"] = wasserstein_distance(mine, theirs)
        return numbers


def distances(
    symbols: Sequence[str], positions: np.ndarray, first: str, second: str
) -> np.ndarray:
    """Return the distances of all pairs of two elements, in all molecules."""
    i, j = np.triu_indices(len(symbols), k=1)
    names, ends = np.array(list(symbols)), sorted((first, second))
    pairs = np.sort([names[i], names[j]], axis=0)
    here = (pairs == np.array(ends)[:, None]).all(axis=0)
    gaps = positions[:, i[here]] - positions[:, j[here]]
    return np.linalg.norm(gaps, axis=-1).ravel()


def angles(
    symbols: Sequence[str], positions: np.ndarray, first: str, middle: str, last: str
) -> np.ndarray:
    """Return the angles at bonded atoms, by `bond_orders`, in degrees."""
    names = np.array(list(symbols))
    ends = np.outer(names == first, names == last)
    ends = np.triu(ends, k=1) if first == last else ends
    bonded = (bond_orders(symbols, positions) > 0) & (names == middle)[:, None]
    both = bonded[:, :, :, None] & bonded[:, :, None] & ends
    mol, at, i, j = np.nonzero(both)
    a, b = (positions[mol, end] - positions[mol, at] for end in (i, j))
    lengths = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    cosine = np.sum(a * b, axis=1) / np.maximum(lengths, 1e-12)
    return np.degrees(np.arccos(np.clip(cosine, -1, 1)))


GEOMETRY = {
    "c_c": lambda symbols, positions: distances(symbols, positions, "C", "C"),
    "c_o": lambda symbols, positions: distances(symbols, positions, "C", "O"),
    "angle_c_c_c": lambda symbols, positions: angles(symbols, positions, *"CCC"),
    "angle_c_c_o": lambda symbols, positions: angles(symbols, positions, *"CCO"),
}
"""Distances and angles whose distributions are compared, in Angstrom and degrees."""


@functools.cache
def reference_molecules(formula: str, download: bool) -> Reference:
    """Return QM9's molecules of a formula.

    Raises:
        DataError: If they are not available or too few, or a file is damaged.
        ImportError: If RDKit is not installed.
    """
    found = qm9_isomers(formula, download=download)
    if found is None:
        raise DataError(
            f"QM9's molecules of {formula} are not available: put qm9_{formula}.npz "
            f"into the folder qm9 of ${DATA_VARIABLE}, or allow --download."
        )
    symbols = symbols_of(found.atomic_numbers)
    centered = found.positions - found.positions.mean(axis=1, keepdims=True)
    is_train = found.split == "train"
    if is_train.sum() < 2 or not (~is_train).any():
        raise DataError(
            f"`molecules` needs at least three molecules of one formula, but has "
            f"{len(centered)} of {formula}."
        )
    train, others = centered[is_train], centered[~is_train]
    mine, theirs = (_graphs(symbols, positions) for positions in (train, others))
    return Reference(symbols, train, others, mine | theirs, theirs)


def _graphs(symbols: Sequence[str], positions: np.ndarray) -> frozenset[str]:
    seen = [perceive(symbols, np.asarray(each, np.float64)) for each in positions]
    return frozenset(each.smiles for each in seen if each.smiles is not None)


def authors_molecules() -> tuple[tuple[str, ...], np.ndarray] | None:
    """Return elements and positions of the 64 molecules that the authors published."""
    clouds = published_clouds("qm9/authors_sampled_molecules.npy", 14, 3)
    return None if clouds is None else (tuple("CCCOCC" + 8 * "H"), clouds)
