"""The pictures of a learned density."""

from collections.abc import Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from equistein.groups import AbstractGroup, ImageRotations, PeriodicCloud
from equistein.metrics import radial_distribution
from equistein.molecules import bonds_of, has_rdkit, infer_bonds, perceive, VALENCES
from equistein.plotting import (
    configurations,
    curves,
    histograms,
    image_rows,
    molecule_viewer,
    molecules,
    planar_samples,
    side_by_side,
)

_SHOWN = 32
_IN_VIEWER = 8


def figures(
    group: AbstractGroup, history: Mapping[str, np.ndarray],
    features: Mapping[str, Any], shown: Mapping[str, np.ndarray],
    panels: Mapping[str, Mapping[str, np.ndarray]], species: Sequence[str] | None,
) -> dict[str, Any]:  # fmt: skip
    """Plot samples, all and those of each class, beside the data.

    Each panel has a quantity of molecules, or a column, of the data and the samples.
    """
    rows = {name: np.ravel(values) for name, values in features.items()}
    plots = {"features": histograms(rows, None, "invariant features, all together")}
    steps = history["step"][0] if history else np.zeros(0)
    if "negative_energy" in history:  # what training closed
        gap = history["positive_energy"] - history["negative_energy"]
        plots["energy_gap"] = curves(
            {"data minus particles": (steps, gap)}, "energy gap",
            exact=(0.0, "exact"), x_label="epoch",
        )  # fmt: skip
    elif "denoising_loss" in history:
        lines = {"denoising": (steps, history["denoising_loss"])}
        plots["denoising_loss"] = curves(lines, "loss", x_label="epoch", log_y=True)
    if isinstance(group, PeriodicCloud):
        lines = {}
        for name, points in shown.items():
            found = radial_distribution(jnp.asarray(points), group)
            lines[name] = (found.distances, found.values[None])
        plots["radial_distribution"] = curves(
            lines, "g", exact=(1.0, "independent"), x_label="distance"
        )
        return plots
    if panels:
        plots["shapes" if species else "columns"] = side_by_side(panels)
    if species is not None:
        return plots | molecule_pictures(species, shown["samples"])
    return plots | _points(group, shown)


def _points(group: AbstractGroup, shown: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """Draw the points themselves, where they are images, planar or small clouds."""
    data, samples = shown["data"], shown["samples"]
    if isinstance(group, ImageRotations):
        limits = (float(np.quantile(data, 0.001)), float(np.quantile(data, 0.999)))
        rows = {
            name: images[:12].reshape(*images[:12].shape[:3], -1)[..., :1]
            for name, images in shown.items()
        }
        return {"samples": image_rows(rows, limits=limits)}
    reach = float(np.quantile(np.abs(data), 0.999)) * 1.25
    if data.ndim == 2 and data.shape[1] == 2:
        views = {name: (points,) for name, points in shown.items()}
        return {"samples": planar_samples(views, ("",), None, reach)}
    if data.ndim == 3 and data.shape[2] >= 2:
        pick = np.linspace(0, len(data) - 1, 10).astype(int)
        rows = {"data": data[pick], "samples": samples[:10]}
        return {"configurations": configurations(rows, reach)}
    return {}


def molecule_pictures(species: Sequence[str], samples: np.ndarray) -> dict[str, Any]:
    """Draw new molecules with bonds, flat and to rotate with the mouse.

    The bonds are inferred; with an element that inference does not know, RDKit's.
    """
    shown = np.asarray(samples[:_SHOWN], np.float64)
    shown = shown - shown.mean(axis=1, keepdims=True)
    orders = np.stack([_bonds(species, molecule) for molecule in shown])
    return {
        "molecules": molecules(species, shown, orders),
        "viewer": molecule_viewer(species, shown[:_IN_VIEWER], orders[:_IN_VIEWER]),
    }


def _bonds(species: Sequence[str], positions: np.ndarray) -> np.ndarray:
    if set(species) <= set(VALENCES):
        return infer_bonds(species, positions)
    mol = perceive(species, positions).mol if has_rdkit() else None
    return np.zeros((len(species),) * 2, int) if mol is None else bonds_of(mol)
