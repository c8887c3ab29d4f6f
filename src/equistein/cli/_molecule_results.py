"""What a fit of molecules leaves besides: their scores and pictures."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from equistein.molecules import (
    bonds_of,
    has_rdkit,
    infer_bonds,
    perceive,
    score_molecules,
    stable_atoms,
    VALENCES,
)
from equistein.plotting import molecule_viewer, molecules

_SHOWN = 32
_COMPARED = 5_000  # known molecules that new ones are compared with
_TURNED = 8


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


def molecule_pictures(species: Sequence[str], samples: np.ndarray) -> dict[str, Any]:
    """Draw new molecules with bonds, flat and to turn with the mouse.

    The bonds are inferred; with an element that inference does not know, RDKit's.
    """
    shown = np.asarray(samples[:_SHOWN], np.float64)
    shown = shown - shown.mean(axis=1, keepdims=True)
    orders = np.stack([_bonds(species, molecule) for molecule in shown])
    return {
        "molecules": molecules(species, shown, orders),
        "turned": molecule_viewer(species, shown[:_TURNED], orders[:_TURNED]),
    }


def _bonds(species: Sequence[str], positions: np.ndarray) -> np.ndarray:
    if set(species) <= set(VALENCES):
        return infer_bonds(species, positions)
    mol = perceive(species, positions).mol if has_rdkit() else None
    if mol is None:
        return np.zeros((len(species), len(species)), int)
    return bonds_of(mol)
