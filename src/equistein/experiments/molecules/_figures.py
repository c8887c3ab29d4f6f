"""The pictures of molecules."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from equistein.experiments.engine._figures import Curves, Histograms, Own, Shown
from equistein.experiments.molecules._reference import GEOMETRY
from equistein.models import shape_panels, shapes_of
from equistein.molecules import drawings, from_bonds, infer_bonds, perceive, symbols_of
from equistein.plotting import molecule_viewer, molecules, picture, side_by_side
from equistein.runs import Outcome

_SHOWN = 64
_TURNED = 12  # molecules to turn with the mouse


def _molecules(outcome: Outcome) -> tuple[tuple[str, ...], np.ndarray]:
    """Return elements and positions."""
    numbers = outcome.arrays["atomic_numbers"][: outcome.samples.shape[1]]
    return symbols_of(numbers), np.asarray(outcome.samples, np.float64)


def pictures_of(name: str, model: str, draw: Any, caption: str) -> Own:
    """Return a picture of the first molecules of a model, with inferred bonds."""

    def function(config: Any, shown: Shown) -> Any | None:
        found = [outcome for entry, outcome in shown if entry.name == model]
        if not found:
            return None
        symbols, positions = _molecules(found[0])
        first = positions[:_SHOWN] - positions[:_SHOWN].mean(axis=1, keepdims=True)
        return draw(symbols, first, np.stack([infer_bonds(symbols, m) for m in first]))

    return Own(name, function, caption=caption)


def _turned(symbols: Sequence[str], shown: np.ndarray, orders: np.ndarray) -> Any:
    return molecule_viewer(symbols, shown[:_TURNED], orders[:_TURNED])


def _formulas(symbols: Sequence[str], shown: np.ndarray, orders: np.ndarray) -> Any:
    mols, captions = [], []
    for positions, bonds in zip(shown, orders, strict=True):
        seen = perceive(symbols, positions)
        captions.append(seen.smiles or seen.problem or "")
        try:
            mols.append(from_bonds(symbols, bonds))
        except ValueError:
            mols.append(None)
    return picture(drawings(mols, captions))


def _histogram(name: str, measured: str, label: str, *about: Any) -> Histograms:
    """Return histograms of distances or angles of all molecules."""
    function, (limits, caption) = GEOMETRY[measured], about
    return Histograms(
        name, lambda outcome: function(*_molecules(outcome)), label, limits,
        caption=caption,
    )  # fmt: skip


def _shapes(config: Any, shown: Shown) -> Any | None:
    """Return the strain, bonds, angles and rings of new molecules beside the data's."""
    found = [outcome for entry, outcome in shown if entry.name == "equivariant"]
    if not found:
        return None
    symbols, positions = _molecules(found[0])
    mols = [perceive(symbols, molecule).mol for molecule in positions]
    new = shapes_of([mol for mol in mols if mol is not None])
    return side_by_side(shape_panels(new, config.reference.shapes))


_DISTANCE = (1.0, 6.0), "Distances between all pairs of two elements, bonded or not."
_ANGLE = (40.0, 180.0), "Angles between bonds, in degrees."

FIGURES = (
    pictures_of(
        "molecules",
        "equivariant",
        molecules,
        "New molecules of the equivariant model, the first 64, with the bonds that the "
        "paper's three steps infer.",
    ),
    pictures_of(
        "formulas",
        "equivariant",
        _formulas,
        "The same molecules as RDKit draws the inferred bonds; below, whether RDKit "
        "itself accepts the positions.",
    ),
    pictures_of(
        "turned", "equivariant", _turned, "New molecules, to turn with the mouse."
    ),
    pictures_of(
        "authors",
        "authors",
        molecules,
        "The molecules that the authors of the paper published, with inferred bonds.",
    ),
    Own(
        "shapes",
        _shapes,
        caption="Strain and displacement by relaxation with MMFF94, rings, bonds and "
        "angles of valid molecules of the equivariant model, beside all molecules of "
        "the formula.",
    ),
    _histogram("distances_c_c", "c_c", "C–C distance / Å", *_DISTANCE),
    _histogram("distances_c_o", "c_o", "C–O distance / Å", *_DISTANCE),
    _histogram("angles_c_c_c", "angle_c_c_c", "C–C–C angle / degrees", *_ANGLE),
    _histogram("angles_c_c_o", "angle_c_c_o", "C–C–O angle / degrees", *_ANGLE),
    Curves("training", "denoising_loss", "denoising loss", x_label="epoch", log_y=True),
)
