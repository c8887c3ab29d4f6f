"""The scores of new molecules."""

import dataclasses
from collections.abc import Collection, Sequence

import numpy as np

from equistein._gate import gate
from equistein.models._molecule_shapes import (
    shape_numbers,
    shape_panels,
    shapes_of,
)
from equistein.molecules import (
    has_rdkit,
    perceive,
    Perceived,
    score_molecules,
    stable_atoms,
    VALENCES,
)


@gate
def known_graphs(species: Sequence[str], positions: np.ndarray) -> frozenset[str]:
    """Return the graphs of molecules as SMILES; none without RDKit.

    Args:
        species: The element of each atom.
        positions: Where the atoms are, `(molecule, atom, 3)`, in Angstrom.
    """
    if not has_rdkit():
        return frozenset()
    seen = (perceive(species, np.asarray(p, np.float64)).smiles for p in positions)
    return frozenset(smiles for smiles in seen if smiles is not None)


@dataclasses.dataclass(frozen=True)
class MoleculeReport:
    """New molecules beside the data.

    Attributes:
        numbers: The scores of the new ones, and what their shapes are like.
        floor: What the shapes of the data are like.
        panels: What a figure of the shapes shows, by label; empty without RDKit.
    """

    numbers: dict[str, float]
    floor: dict[str, float]
    panels: dict[str, dict[str, np.ndarray]]


def report_molecules(
    species: Sequence[str], data: np.ndarray, samples: np.ndarray
) -> MoleculeReport:
    """Judge new molecules beside the data: scores, strain, bonds, angles and rings.

    Args:
        species: The element of each atom.
        data: The positions in the data, `(molecule, atom, 3)`, in Angstrom.
        samples: New molecules, the same way.
    """
    if not has_rdkit():
        return MoleculeReport(molecule_numbers(species, samples, ()), {}, {})
    before, after = (
        [perceive(species, np.asarray(molecule, np.float64)) for molecule in positions]
        for positions in (data, samples)
    )
    known = {seen.smiles for seen in before if seen.smiles is not None}
    numbers = molecule_numbers(species, samples, known, after)
    theirs, mine = (
        shapes_of([seen.mol for seen in all_seen if seen.mol is not None])
        for all_seen in (before, after)
    )
    return MoleculeReport(
        numbers | shape_numbers(mine, theirs),
        shape_numbers(theirs, theirs),
        shape_panels(mine, theirs),
    )


@gate
def molecule_numbers(
    species: Sequence[str],
    samples: np.ndarray,
    known: Collection[str],
    perceived: Sequence[Perceived] | None = None,
) -> dict[str, float]:
    """Return the scores of new molecules.

    Without RDKit it is their stability alone; with an element but H, C, N, O and F,
    which the table of stable bonds does not know, all but that.

    Args:
        species: The element of each atom.
        samples: New molecules, `(molecule, atom, 3)`, in Angstrom.
        known: The graphs of those that are known, as `known_graphs` gives them.
        perceived: What `perceive` made of each new one, if that is known already.
    """
    samples = np.asarray(samples, np.float64)
    if not has_rdkit():
        if not set(species) <= set(VALENCES):
            return {}
        stable = stable_atoms(species, samples)
        return {
            "atom_stability": float(stable.mean()),
            "molecule_stability": float(stable.all(axis=1).mean()),
        }
    numbers = dataclasses.asdict(score_molecules(species, samples, known, perceived))
    del numbers["num_molecules"]
    if not set(species) <= set(VALENCES):
        del numbers["atom_stability"], numbers["molecule_stability"]
    return {name: float(value) for name, value in numbers.items()}
