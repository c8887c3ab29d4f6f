"""How good a set of molecules is."""

import dataclasses
from collections.abc import Collection, Sequence

import numpy as np

from equistein._gate import gate
from equistein.molecules._elements import VALENCES
from equistein.molecules._rdkit import perceive, Perceived
from equistein.molecules._stability import stable_atoms


@dataclasses.dataclass(frozen=True)
class Scores:
    """Scores of a set of molecules.

    Attributes:
        num_molecules: The number of molecules.
        atom_stability: The fraction of atoms whose bonds, by a table of lengths, sum to
            their valence; NaN with an element that the table does not know.
        molecule_stability: The fraction of molecules with no other atoms; NaN likewise.
        validity: The fraction that RDKit accepts as one neutral molecule.
        uniqueness: Distinct graphs over valid molecules; NaN without any.
        num_isomers: The number of distinct graphs.
        num_novel: The number of these that are not known.
        coverage: The fraction of the known graphs among these.
    """

    num_molecules: int
    atom_stability: float
    molecule_stability: float
    validity: float
    uniqueness: float
    num_isomers: int
    num_novel: int
    coverage: float


@gate
def score_molecules(
    symbols: Sequence[str],
    positions: np.ndarray,
    known: Collection[str],
    perceived: Sequence[Perceived] | None = None,
) -> Scores:
    """Return the scores of molecules of one formula.

    Args:
        symbols: The element of each atom.
        positions: Their positions, in Angstrom, `(molecule, atom, 3)`.
        known: The SMILES of known graphs, as by `perceive`.
        perceived: The results of `perceive`, if known already.

    Raises:
        ValueError: If there is no molecule.
        MissingRDKit: If RDKit is not installed.
    """
    if not len(positions):
        raise ValueError("`score_molecules` needs `positions` of at least one.")
    if perceived is None:
        perceived = [perceive(symbols, molecule) for molecule in positions]
    atoms = molecules = float("nan")
    if set(symbols) <= set(VALENCES):
        stable = stable_atoms(symbols, positions)
        atoms, molecules = float(stable.mean()), float(stable.all(axis=1).mean())
    valid = [p.smiles for p in perceived if p.smiles is not None]
    graphs, known = set(valid), set(known)
    return Scores(
        num_molecules=len(positions),
        atom_stability=atoms,
        molecule_stability=molecules,
        validity=len(valid) / len(positions),
        uniqueness=len(graphs) / len(valid) if valid else float("nan"),
        num_isomers=len(graphs),
        num_novel=len(graphs - known),
        coverage=len(graphs & known) / len(known) if known else float("nan"),
    )
