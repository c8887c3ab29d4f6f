"""The shapes of new molecules, beside those of the data."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from equistein._gate import gate
from equistein.molecules import Geometry, geometry, Strain, strain

_RINGS = (3, 4, 5, 6)
_NUM_BONDS, _NUM_ANGLES = 4, 3  # the most frequent in the data


@gate
@dataclasses.dataclass(frozen=True)
class Shapes:
    """Strain, bonds, angles and rings of molecules.

    Attributes:
        strain: What relaxation takes out of some of them.
        geometry: The bonds, angles and rings of all.
    """

    strain: Strain
    geometry: Geometry


@gate
def shapes_of(mols: Sequence[Any]) -> Shapes:
    """Return the shapes of RDKit molecules, as `perceive` gives them."""
    return Shapes(strain(mols), geometry(mols))


@gate
def shape_numbers(shapes: Shapes, data: Shapes) -> dict[str, float]:
    """Return summary numbers of shapes, of the bonds and angles that the data has.

    The strain is the median and the 90th percentile of the energy that relaxation by
    MMFF94 takes out, in kcal/mol; then the median displacement in Angstrom, the mean
    lengths and angles, and the number of rings a molecule.
    """
    energies, displacements = shapes.strain
    mine, known = shapes.geometry, data.geometry
    numbers = {
        "strain": _quantile(energies, 0.5),
        "strain_90": _quantile(energies, 0.9),
        "displacement": _quantile(displacements, 0.5),
    }
    for name in list(known.bonds)[:_NUM_BONDS]:
        numbers[f"bond_{name}"] = _mean(mine.bonds.get(name))
    for name in list(known.angles)[:_NUM_ANGLES]:
        numbers[f"angle_{name}"] = _mean(mine.angles.get(name))
    for size in _RINGS:
        count = np.sum(mine.rings == size)
        numbers[f"rings_{size}"] = float(count / max(1, mine.num_molecules))
    return numbers


@gate
def shape_panels(shapes: Shapes, data: Shapes) -> dict[str, dict[str, np.ndarray]]:
    """Return what a figure shows: the values of data and samples, by label."""
    both = {"data": data, "samples": shapes}
    known, none = data.geometry, np.zeros(0)
    panels = {
        "strain / (kcal/mol)": {n: s.strain.energies for n, s in both.items()},
        "displacement / Å": {n: s.strain.displacements for n, s in both.items()},
        "size of rings": {n: s.geometry.rings for n, s in both.items()},
    }
    for name in list(known.bonds)[:_NUM_BONDS]:
        values = {n: s.geometry.bonds.get(name, none) for n, s in both.items()}
        panels[f"bond {'–'.join(_elements(name))} / Å"] = values
    for name in list(known.angles)[:_NUM_ANGLES]:
        values = {n: s.geometry.angles.get(name, none) for n, s in both.items()}
        panels[f"angle {'–'.join(_elements(name))} / degrees"] = values
    return {label: each for label, each in panels.items() if len(each["data"])}


def _elements(name: str) -> list[str]:
    starts = [at for at, letter in enumerate(name) if letter.isupper()]
    return [name[a:b] for a, b in zip(starts, [*starts[1:], None], strict=True)]


def _quantile(values: np.ndarray, level: float) -> float:
    return float(np.quantile(values, level)) if len(values) else float("nan")


def _mean(values: np.ndarray | None) -> float:
    return float("nan") if values is None or not len(values) else float(values.mean())
