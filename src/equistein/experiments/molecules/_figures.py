"""The pictures of `molecules`."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

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
from equistein.plotting import curves, histograms, molecule_viewer, molecules, picture
from equistein.runs import FLOOR, Outcome

_SHOWN = 64
_TURNED = 12  # molecules to turn with the mouse

NOTES = {
    "equivariant": "New molecules of an energy on an E(n)-equivariant graph network, "
    "learned by denoising score matching at all levels of noise, and sampled while the "
    "noise falls: by the reversed diffusion, with E-SVGD where the noise is small.",
    "plain": "The twin without symmetry: a multilayer perceptron of the coordinates. "
    "It sees each training molecule in one place and order only, and gives these back.",
    "floor": "The training molecules, with distances to those held out; the models are "
    "compared with both together. `from_qm9` is 0 where RDKit built the molecules.",
    "authors": "The 64 molecules that the authors of the paper published.",
}
CAPTIONS = {
    "angles": "Angles between bonds, in degrees.",
    "authors": "The molecules that the authors of the paper published, with inferred "
    "bonds.",
    "distances": "Distances between all pairs of two elements, bonded or not.",
    "formulas": "The same molecules as RDKit draws the inferred bonds; below, whether "
    "RDKit itself accepts the positions.",
    "molecules": "New molecules of the equivariant model, the first 64, with the bonds "
    "that the paper's three steps infer.",
    "turned": "New molecules, to turn with the mouse.",
    "training": "The loss of denoising.",
}


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


def draw(config: Any, outcomes: Mapping[str, Outcome]) -> dict:
    """Draw molecules, their formulas, and the laws of distances and angles."""
    del config
    named = {"data" if name == FLOOR else name: out for name, out in outcomes.items()}
    figures: dict[str, Any] = {}
    if "equivariant" in named:
        symbols, shown, orders = _shown(named["equivariant"])
        figures["molecules"] = molecules(symbols, shown, orders)
        figures["formulas"] = picture(_formulas(symbols, shown, orders))
        figures["turned"] = molecule_viewer(symbols, shown[:_TURNED], orders[:_TURNED])
    if "authors" in named:
        figures["authors"] = molecules(*_shown(named["authors"]))
    for name, (kinds, limits, label) in {
        "distances": (("c_c", "c_o"), (1.0, 6.0), "distance / Å"),
        "angles": (("c_c_c", "c_c_o"), (40.0, 180.0), "angle / degrees"),
    }.items():
        for kind in kinds:
            samples = {
                model: outcome.arrays[kind]
                for model, outcome in named.items()
                if len(outcome.arrays[kind])
            }
            if not samples:
                continue
            words = kind.upper().replace("_", "–")
            figures[f"{name}_{kind}"] = histograms(
                samples, None, f"{words} {label}", limits=limits, bins=60
            )
    series = {
        name: (out.history["step"][0], out.history["score_matching_loss"])
        for name, out in named.items()
        if "score_matching_loss" in out.history
    }
    if series:
        figures["training"] = curves(
            series, "denoising loss", x_label="epoch", log_y=True
        )
    return figures


def _shown(outcome: Outcome) -> tuple[tuple[str, ...], np.ndarray, np.ndarray]:
    """Return elements, positions and bonds of the molecules of the first seed."""
    shown = outcome.arrays["shown"][:_SHOWN]
    symbols = symbols_of(outcome.arrays["atomic_numbers"][: shown.shape[1]])
    return symbols, shown, outcome.arrays["orders"][:_SHOWN]


def _formulas(
    symbols: Sequence[str], shown: np.ndarray, orders: np.ndarray
) -> np.ndarray:
    mols, captions = [], []
    for positions, bonds in zip(shown, orders, strict=True):
        seen = perceive(symbols, positions)
        captions.append(seen.smiles or seen.problem or "")
        try:
            mols.append(from_bonds(symbols, bonds))
        except ValueError:
            mols.append(None)
    return drawings(mols, captions)
