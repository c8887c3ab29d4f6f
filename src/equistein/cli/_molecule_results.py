"""What a fit of molecules leaves besides: their scores and pictures."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from equistein.molecules import (
    has_rdkit,
    infer_bonds,
    perceive,
    score_molecules,
    stable_atoms,
)
from equistein.plotting import molecule_viewer, molecules

_KNOWN = frozenset("HCNOF")
_SHOWN = 32
_COMPARED = 5_000  # known molecules that new ones are compared with
_TURNED = 8


def organic(species: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """Return the elements if the scores and the inferred bonds know all of them."""
    return species if species is not None and set(species) <= _KNOWN else None


def molecule_numbers(
    species: Sequence[str], data: np.ndarray, samples: np.ndarray
) -> dict[str, float]:
    """Return the scores of new molecules; without RDKit, their stability alone.

    Args:
        species: The element of each atom, of H, C, N, O and F.
        data: The molecules that are known, `(molecule, atom, 3)`, in Angstrom.
        samples: New ones.
    """
    data = np.asarray(data[:_COMPARED], np.float64)
    samples = np.asarray(samples, np.float64)
    if not has_rdkit():
        stable = stable_atoms(species, samples)
        return {
            "atom_stability": float(stable.mean()),
            "molecule_stability": float(stable.all(axis=1).mean()),
        }
    seen = (perceive(species, molecule).smiles for molecule in data)
    known = {smiles for smiles in seen if smiles is not None}
    numbers = dataclasses.asdict(score_molecules(species, samples, known))
    del numbers["num_molecules"]
    return {name: float(value) for name, value in numbers.items()}


def molecule_pictures(species: Sequence[str], samples: np.ndarray) -> dict[str, Any]:
    """Draw new molecules with inferred bonds, flat and to turn with the mouse."""
    shown = np.asarray(samples[:_SHOWN], np.float64)
    shown = shown - shown.mean(axis=1, keepdims=True)
    orders = np.stack([infer_bonds(species, molecule) for molecule in shown])
    return {
        "molecules": molecules(species, shown, orders),
        "turned": molecule_viewer(species, shown[:_TURNED], orders[:_TURNED]),
    }
