"""The pictures of molecules."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from equistein.experiments.engine._figures import Curves, Histograms, Own
from equistein.experiments.engine._levels import Shown
from equistein.molecules import (
    angles,
    atomic_numbers_of,
    distances,
    drawings,
    from_bonds,
    infer_bonds,
    perceive,
    symbols_of,
)
from equistein.plotting import molecule_viewer, molecules, picture
from equistein.runs import Outcome

_SHOWN = 64
_TURNED = 12  # molecules to turn with the mouse


def pictured(symbols: Sequence[str], positions: np.ndarray) -> dict[str, np.ndarray]:
    """Return what the pictures need of a set of molecules."""
    positions = np.asarray(positions, np.float64)
    centered = positions - positions.mean(axis=1, keepdims=True)
    shown = centered[:_SHOWN]
    return {
        "atomic_numbers": np.array(atomic_numbers_of(symbols)),
        "shown": shown,
        "orders": np.stack([infer_bonds(symbols, molecule) for molecule in shown]),
        "c_c": distances(symbols, centered, "C", "C"),
        "c_o": distances(symbols, centered, "C", "O"),
        "c_c_c": angles(symbols, centered, "C", "C", "C"),
        "c_c_o": angles(symbols, centered, "C", "C", "O"),
    }


def _pictures(name: str, model: str, draw: Any, caption: str) -> Own:
    """Return a picture of the molecules of the first seed of a model."""

    def function(config: Any, shown: Shown) -> Any | None:
        del config
        found = {entry.name: outcome for entry, outcome in shown}
        return draw(*_of_first_seed(found[model])) if model in found else None

    return Own(name, function, caption=caption)


def _of_first_seed(outcome: Outcome) -> tuple[tuple[str, ...], np.ndarray, np.ndarray]:
    """Return elements, positions and bonds."""
    shown = outcome.arrays["shown"][:_SHOWN]
    symbols = symbols_of(outcome.arrays["atomic_numbers"][: shown.shape[1]])
    return symbols, shown, outcome.arrays["orders"][:_SHOWN]


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


def _histogram(kind: str, what: str, limits: tuple[float, float]) -> Histograms:
    atoms = kind.upper().replace("_", "–")
    name = what.partition(" ")[0]
    caption = "Distances between all pairs of two elements, bonded or not."
    if name == "angle":
        caption = "Angles between bonds, in degrees."
    label = f"{atoms} {what}"
    return Histograms(f"{name}s_{kind}", kind, label, limits, caption=caption)


FIGURES = (
    _pictures(
        "molecules",
        "equivariant",
        molecules,
        "New molecules of the equivariant model, the first 64, with the bonds that the "
        "paper's three steps infer.",
    ),
    _pictures(
        "formulas",
        "equivariant",
        _formulas,
        "The same molecules as RDKit draws the inferred bonds; below, whether RDKit "
        "itself accepts the positions.",
    ),
    _pictures(
        "turned", "equivariant", _turned, "New molecules, to turn with the mouse."
    ),
    _pictures(
        "authors",
        "authors",
        molecules,
        "The molecules that the authors of the paper published, with inferred bonds.",
    ),
    _histogram("c_c", "distance / Å", (1.0, 6.0)),
    _histogram("c_o", "distance / Å", (1.0, 6.0)),
    _histogram("c_c_c", "angle / degrees", (40.0, 180.0)),
    _histogram("c_c_o", "angle / degrees", (40.0, 180.0)),
    Curves("training", "denoising_loss", "denoising loss", x_label="epoch", log_y=True),
)
