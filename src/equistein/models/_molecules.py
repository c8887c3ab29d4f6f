"""The scores and the shapes of new molecules, beside those of the data."""

import dataclasses
import re
from collections.abc import Callable, Collection, Iterable, Sequence
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
_MEASURED = (("bond", 4, "Å"), ("angle", 3, "degrees"))  # the most frequent in the data


class Shapes(NamedTuple):
    """Strain, bonds, angles and rings of molecules.

    Attributes:
        strain: What relaxation takes out of some of them.
        geometry: The bonds, angles and rings of all.
    """

    strain: Strain
    geometry: Geometry


@gate
def shapes_of(perceived: Iterable[Perceived]) -> Shapes:
    """Return the shapes of the valid ones of molecules, as `perceive` gives them."""
    mols = [seen.mol for seen in perceived if seen.mol is not None]
    return Shapes(strain(mols), geometry(mols))


def _measured(shapes: Shapes, kind: str) -> dict[str, np.ndarray]:
    """Return the bonds or the angles by their elements."""
    return getattr(shapes.geometry, f"{kind}s")


@gate
def shape_numbers(shapes: Shapes, data: Shapes) -> dict[str, float]:
    """Return summary numbers of shapes, of the bonds and angles that the data has.

    The strain is the median and the 90th percentile of the energy that relaxation by
    MMFF94 takes out, in kcal/mol; then the median displacement in Angstrom, the mean
    lengths and angles, and the number of rings a molecule.
    """
    none, found = np.zeros(0), shapes.geometry
    numbers = {
        "strain": _quantile(shapes.strain.energies, 0.5),
        "strain_90": _quantile(shapes.strain.energies, 0.9),
        "displacement": _quantile(shapes.strain.displacements, 0.5),
    }
    for kind, num, _ in _MEASURED:
        for name in list(_measured(data, kind))[:num]:
            values = _measured(shapes, kind).get(name, none)
            numbers[f"{kind}_{name}"] = float(values.mean()) if len(values) else np.nan
    for size in _RINGS:
        count = np.sum(found.rings == size)
        numbers[f"rings_{size}"] = float(count / max(1, found.num_molecules))
    return numbers


@gate
def shape_panels(shapes: Shapes, data: Shapes) -> dict[str, dict[str, np.ndarray]]:
    """Return what a figure shows: the values of data and samples, by label."""
    none = np.zeros(0)

    def both(values: Callable[[Shapes], np.ndarray]) -> dict[str, np.ndarray]:
        return {"data": values(data), "samples": values(shapes)}

    panels = {
        "strain / (kcal/mol)": both(lambda s: s.strain.energies),
        "displacement / Å": both(lambda s: s.strain.displacements),
        "size of rings": both(lambda s: s.geometry.rings),
    }
    for kind, num, unit in _MEASURED:
        for name in list(_measured(data, kind))[:num]:
            label = f"{kind} {'–'.join(re.findall('[A-Z][^A-Z]*', name))} / {unit}"
            panels[label] = both(lambda s, k=kind, n=name: _measured(s, k).get(n, none))
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
        perceived: What `perceive` made of each new one, if that is known already.
    """
    samples = np.asarray(samples, np.float64)
    if has_rdkit():
        scores = score_molecules(species, samples, known, perceived)
        numbers = dataclasses.asdict(scores)
        del numbers["num_molecules"]
    else:
        known_bonds = set(species) <= set(VALENCES)
        stable = stable_atoms(species, samples) if known_bonds else np.zeros((1, 1))
        numbers = {
            "atom_stability": stable.mean(),
            "molecule_stability": stable.all(axis=1).mean(),
        }
    if not set(species) <= set(VALENCES):
        del numbers["atom_stability"], numbers["molecule_stability"]
    return {name: float(value) for name, value in numbers.items()}
