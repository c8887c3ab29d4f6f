"""The scores of new molecules."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from equistein.molecules import (
    has_rdkit,
    perceive,
    score_molecules,
    stable_atoms,
    VALENCES,
)

_COMPARED = 5_000  # known molecules that new ones are compared with


def molecule_numbers(
    species: Sequence[str], data: np.ndarray, samples: np.ndarray
) -> dict[str, float]:
    """Return the scores of new molecules.

    Without RDKit it is their stability alone; with an element but H, C, N, O and F,
    which the table of stable bonds does not know, all but that.

    Args:
        species: The element of each atom.
        data: The molecules that are known, `(molecule, atom, 3)`, in Angstrom.
        samples: New ones.
    """
    data = np.asarray(data[:_COMPARED], np.float64)
    samples = np.asarray(samples, np.float64)
    if not has_rdkit():
        if not set(species) <= set(VALENCES):
            return {}
        stable = stable_atoms(species, samples)
        return {
            "atom_stability": float(stable.mean()),
            "molecule_stability": float(stable.all(axis=1).mean()),
        }
    seen = (perceive(species, molecule).smiles for molecule in data)
    known = {smiles for smiles in seen if smiles is not None}
    numbers = dataclasses.asdict(score_molecules(species, samples, known))
    del numbers["num_molecules"]
    if not set(species) <= set(VALENCES):
        del numbers["atom_stability"], numbers["molecule_stability"]
    return {name: float(value) for name, value in numbers.items()}
