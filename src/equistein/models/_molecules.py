"""The scores and the shapes of new molecules, beside those of the data."""

import dataclasses
import re
from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from equistein._gate import gate
from equistein.molecules import (
    Geometry,
    geometry,
    has_rdkit,
    perceive,
    Perceived,
    score_molecules,
    stable_atoms,
    Strain,
    strain,
    VALENCES,
)

_RINGS = (3, 4, 5, 6)
_NUM_BONDS, _NUM_ANGLES = 4, 3  # the most frequent in the data


class Shapes(NamedTuple):
    """Strain, which relaxation takes out of some molecules, and geometry of all."""

    strain: Strain
    geometry: Geometry

    def like(self, data: "Shapes") -> dict[str, tuple[str, str, np.ndarray]]:
        """Return the bonds and angles that are most frequent in the data.

        By the names of numbers: kind, unit and values.
        """
        mine, known, none = self.geometry, data.geometry, np.zeros(0)
        bonds, angles = list(known.bonds)[:_NUM_BONDS], list(known.angles)[:_NUM_ANGLES]
        found = {f"bond_{n}": ("bond", "Å", mine.bonds.get(n, none)) for n in bonds}
        return found | {
            f"angle_{n}": ("angle", "degrees", mine.angles.get(n, none)) for n in angles
        }


@gate
def shapes_of(perceived: Iterable[Perceived]) -> Shapes:
    """Return the shapes of the valid ones of molecules, as `perceive` gives them."""
    mols = [seen.mol for seen in perceived if seen.mol is not None]
    return Shapes(strain(mols), geometry(mols))


@gate
def shape_numbers(shapes: Shapes, data: Shapes) -> dict[str, float]:
    """Return summary numbers of shapes, of the bonds and angles that the data has.

    The strain is the median and the 90th percentile of the energy that relaxation by
    MMFF94 takes out, in kcal/mol; then the median displacement in Angstrom, the mean
    lengths and angles, and the number of rings a molecule.
    """
    found = shapes.geometry
    numbers = {
        "strain": _quantile(shapes.strain.energies, 0.5),
        "strain_90": _quantile(shapes.strain.energies, 0.9),
        "displacement": _quantile(shapes.strain.displacements, 0.5),
    }
    for name, (_, _, values) in shapes.like(data).items():
        numbers[name] = float(values.mean()) if len(values) else float("nan")
    for size in _RINGS:
        count = np.sum(found.rings == size)
        numbers[f"rings_{size}"] = float(count / max(1, found.num_molecules))
    return numbers


@gate
def shape_panels(shapes: Shapes, data: Shapes) -> dict[str, dict[str, np.ndarray]]:
    """Return what a figure shows: the values of data and samples, by label."""
    both = {"data": data, "samples": shapes}
    panels = {
        "strain / (kcal/mol)": {n: s.strain.energies for n, s in both.items()},
        "displacement / Å": {n: s.strain.displacements for n, s in both.items()},
        "size of rings": {n: s.geometry.rings for n, s in both.items()},
    }
    mine = shapes.like(data)
    for name, (kind, unit, values) in data.like(data).items():
        elements = "–".join(re.findall("[A-Z][^A-Z]*", name))
        label = f"{kind} {elements} / {unit}"
        panels[label] = {"data": values, "samples": mine[name][2]}
    return {label: each for label, each in panels.items() if len(each["data"])}


def _quantile(values: np.ndarray, level: float) -> float:
    return float(np.quantile(values, level)) if len(values) else float("nan")


def report_molecules(
    species: Sequence[str], data: np.ndarray, samples: np.ndarray
) -> tuple[dict[str, float], dict[str, float], dict[str, Any]]:
    """Judge new molecules beside the data, by scores, strain, bonds, angles and rings.

    Returns:
        The numbers of the new ones, those of the data, and what a figure of the shapes
        shows; without RDKit of the new ones alone.
    """
    if not has_rdkit():
        return molecule_numbers(species, samples, ()), {}, {}
    before, after = (
        [perceive(species, np.asarray(molecule, np.float64)) for molecule in positions]
        for positions in (data, samples)
    )
    known = {seen.smiles for seen in before if seen.smiles is not None}
    numbers = molecule_numbers(species, samples, known, after)
    theirs, mine = shapes_of(before), shapes_of(after)
    return (
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
        known: The SMILES of known graphs.
        perceived: What `perceive` made of each, if that is known already.
    """
    samples = np.asarray(samples, np.float64)
    numbers, table = {}, set(species) <= set(VALENCES)
    if has_rdkit():
        scores = score_molecules(species, samples, known, perceived)
        numbers = dataclasses.asdict(scores)
        del numbers["num_molecules"]
    elif table:
        stable = stable_atoms(species, samples)
        numbers["atom_stability"] = stable.mean()
        numbers["molecule_stability"] = stable.all(axis=1).mean()
    return {
        name: float(value)
        for name, value in numbers.items()
        if table or not name.endswith("stability")
    }
