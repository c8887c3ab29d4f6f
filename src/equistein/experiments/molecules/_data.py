"""The molecules that `molecules` learns from and compares with."""

import dataclasses
import functools
import warnings

import numpy as np

from equistein.data import DataError, published_clouds, qm9_isomers, QM9Isomers
from equistein.molecules import (
    atomic_numbers_of,
    atoms_of,
    embed,
    isomers,
    perceive,
    symbols_of,
)

_HELD_OUT = 0.25  # of the isomers that RDKit builds


@dataclasses.dataclass(frozen=True)
class Reference:
    """The molecules of one formula.

    Attributes:
        symbols: The element of each atom.
        train: The positions that are learned from, `(molecule, atom, 3)`.
        others: Those that are held out.
        train_graphs: The SMILES of the training molecules.
        other_graphs: Those of the others.
        source: Where they come from.
    """

    symbols: tuple[str, ...]
    train: np.ndarray
    others: np.ndarray
    train_graphs: frozenset[str]
    other_graphs: frozenset[str]
    source: str

    @property
    def everything(self) -> np.ndarray:
        """The positions of all molecules."""
        return np.concatenate([self.train, self.others])

    @property
    def graphs(self) -> frozenset[str]:
        """The SMILES of all molecules."""
        return self.train_graphs | self.other_graphs


@functools.cache
def reference_molecules(formula: str, download: bool) -> Reference:
    """Return QM9's molecules of a formula, or the isomers that RDKit builds.

    Args:
        formula: Such as C5H8O.
        download: Whether QM9 may be fetched.

    Raises:
        DataError: If there are too few molecules of the formula, or a file is damaged.
        MissingRDKit: If RDKit is not installed.
    """
    found = qm9_isomers(formula)
    if found is None and download:
        try:
            found = qm9_isomers(formula, download=True)
        except DataError as error:
            warnings.warn(f"{error} RDKit builds the isomers instead.", stacklevel=2)
    source = "QM9 (B3LYP)"
    if found is None:
        found, source = _built(formula), "built by RDKit (ETKDG, MMFF94)"
    symbols = symbols_of(found.atomic_numbers)
    centered = found.positions - found.positions.mean(axis=1, keepdims=True)
    is_train = found.split == "train"
    if is_train.sum() < 2 or not (~is_train).any():
        raise DataError(
            f"`molecules` needs at least three molecules of one formula, but has "
            f"{len(centered)} of {formula}."
        )

    def graphs(positions):
        seen = (perceive(symbols, molecule).smiles for molecule in positions)
        return frozenset(smiles for smiles in seen if smiles is not None)

    train, others = centered[is_train], centered[~is_train]
    return Reference(symbols, train, others, graphs(train), graphs(others), source)


def authors_molecules() -> tuple[tuple[str, ...], np.ndarray] | None:
    """Return elements and positions of the 64 molecules that the authors published."""
    clouds = published_clouds("qm9/authors_sampled_molecules.npy", 14, 3)
    return None if clouds is None else (tuple("CCCOCC" + 8 * "H"), clouds)


def _built(formula: str) -> QM9Isomers:
    symbols = atoms_of(formula)
    shapes = [embed(smiles, symbols) for smiles in isomers(symbols)]
    positions = [shape for shape in shapes if shape is not None]
    if not positions:
        raise DataError(f"RDKit builds no molecule of the formula {formula!r}.")
    held_out = np.random.default_rng(0).random(len(positions)) < _HELD_OUT
    return QM9Isomers(
        np.stack(positions),
        np.array(atomic_numbers_of(symbols)),
        np.where(held_out, "test", "train"),
    )
