"""The report of a fit: the same page from Python and from the command line."""

import pathlib
from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import ArrayLike

from equistein._arrays import as_keys, check_particles
from equistein._numbers import check_integers
from equistein._types import AnyKey
from equistein.diffusion import MixtureNoiseEnergy
from equistein.models._dataset import Dataset
from equistein.models._judge import judge
from equistein.molecules import symbols_of
from equistein.runs import Metric, metrics_json, ReportText, seed_outcome, write_page
from equistein.training import Fitted

FIT_METRICS: Mapping[str, Metric] = {
    "held_out_force_error": Metric("error of held-out forces", "lower", "eV/Å"),
    "held_out_energy_error": Metric("error of held-out energies", "lower", "meV/atom"),
    "held_out_log_likelihood": Metric("held-out log-likelihood", "higher", "nats"),
    "held_out_denoising_loss": Metric("loss of denoising held-out points", "lower"),
    "held_out_accuracy": Metric("accuracy on held-out points", "higher"),
    "validity": Metric("valid molecules", "higher"),
    "molecule_stability": Metric("molecules of stable atoms alone", "higher"),
    "energy_distance_of_features": Metric("energy distance of features", "lower"),
    "w1_of_a_feature": Metric("mean W1 distance over features", "lower"),
    "calibration_error": Metric("expected calibration error", "lower"),
    "atom_stability": Metric("atoms with the bonds of their valence", "higher"),
    "bits_per_dimension": Metric("bits a dimension", "lower"),
    "loss": Metric("loss at the end", "lower"),
}
_NUM_HEADLINES = 5  # the first of these metrics that there are

_LIKELIHOOD = (
    "Samples from fresh starts are compared with one half of the data by their "
    "features, invariant or of randomly moved points. The held-out log-likelihood uses "
    "log Z by annealed importance sampling, whose error bound is beside it. AUROC is "
    "the probability that a held-out point scores higher than one drawn uniformly from "
    "the data's box."
)
_DENOISING = (
    "Samples by reverse diffusion are compared with one half of the data by a smooth "
    "histogram of their distances. Stable atoms have bonds, by a table of lengths of "
    "H, C, N, O and F, that sum to their valence; RDKit accepts valid molecules; novel "
    "ones are not in the data. Strain in kcal/mol is what relaxation by MMFF94 removes "
    "from up to 200 valid molecules, median and 90th percentile; displacement, in Å, "
    "is how far it moves their atoms. Bonds and angles are means, rings counts each."
)
_IMAGES = (
    "Samples by reverse diffusion are compared with one half of the data by their "
    "pixels, each image moved by the group at random."
)
_FORCES = (
    " Errors of forces (of a component) and of energies (without their constant) are "
    "mean absolute values over held-out frames; the error of zero is of no forces."
)
_BLURRED = " Those of a graph network are for atoms blurred by the least noise."
_CAPTIONS = {
    "features": "All invariant features of the data and of the samples.",
    "molecules": "New molecules, with bonds inferred from distances, or by RDKit where "
    "there are other elements than H, C, N, O and F.",
    "turned": "New molecules, which can be rotated with the mouse.",
    "shapes": "Strain, displacement, rings, bonds and angles of valid molecules in the "
    "data and among the samples.",
    "energy_gap": "The gap that contrastive divergence closes.",
    "denoising_loss": "The loss of denoising.",
    "configurations": "Configurations from the data, and new ones.",
    "columns": "Each column of the table, in the data and the samples. Where a "
    "symmetry mixes columns, samples follow it and data need not.",
    "samples": "The data, and new samples; those of each class by themselves.",
}


def fit_text(
    fitted: Fitted,
    metrics: Mapping[str, Any],
    title: str = "A learned density",
    lead: str = "",
    *,
    kelvin: float | None = None,
) -> ReportText:
    """Return the text of the report of a fit, with the numbers of its model.

    The lead tells what was fitted, by default the energy, its symmetry and its points;
    `kelvin` is the temperature of energies and forces, if any were learned.
    """
    epochs = len(next(iter(fitted.history.values()), ()))
    is_denoised = "denoising_loss" in fitted.history
    note = _DENOISING if is_denoised else _LIKELIHOOD
    if isinstance(fitted.energy, MixtureNoiseEnergy):
        note = _IMAGES
    if kelvin is not None:
        note += _FORCES + (_BLURRED if is_denoised else "")
    return ReportText(
        title=title,
        lead=lead
        or f"{type(fitted.energy).__name__} with the symmetry "
        f"{fitted.group!r}, of points of shape {fitted.reference.center.shape}, "
        f"learned in {epochs} epochs.",
        notes={"model": note},
        captions=_CAPTIONS,
        floor="data",
        floor_note="The floor: as many data points as samples, from one half of the "
        "data, compared with the other half in the same way.",
        headlines=[name for name in FIT_METRICS if name in metrics][:_NUM_HEADLINES],
    )


def write_fit_report(
    path: pathlib.Path | str,
    fitted: Fitted,
    data: ArrayLike | None = None,
    key: AnyKey = 0,
    num_samples: int = 256,
) -> None:
    """Write the page that `equistein fit` writes: numbers, figures, settings.

    Args:
        path: The HTML file; one that exists is replaced.
        fitted: The learned density.
        data: Points to compare samples with, such as those learned from.
        key: The source of randomness of samples.
        num_samples: The number of samples.

    Raises:
        ValueError: If the data are other points, or no generator draws samples.
        OSError: If the file cannot be written.
    """
    key = as_keys(key)
    check_integers("`write_fit_report`", num_samples=num_samples)
    if data is None:
        loss, none = fitted.history.get("loss", np.zeros(0)), np.zeros((0, 1))
        last = {"loss": loss[-1]} if len(loss) else {}
        outcomes = {"model": seed_outcome(last, none, events=fitted.events)}
        figures = {}
    else:
        outcomes, figures = judge(
            key, fitted, _dataset_of(fitted, data), num_samples=num_samples
        )
    settings = {
        "group": repr(fitted.group),
        "energy": type(fitted.energy).__name__,
        "generator": type(fitted.generator).__name__,
    }
    write_page(
        pathlib.Path(path), fit_text(fitted, outcomes["model"].metrics),
        metrics_json(outcomes, (), FIT_METRICS), page_figures(figures), settings,
    )  # fmt: skip


def page_figures(figures: Mapping[str, Any]) -> dict[str, str | bytes]:
    """Return drawn figures as parts of a page."""
    from equistein.plotting import figure_file, Page  # loads matplotlib

    return {
        name: figure.html if isinstance(figure, Page) else figure_file(figure, "png")
        for name, figure in figures.items()
    }


def _dataset_of(fitted: Fitted, data: ArrayLike) -> Dataset:
    points = check_particles(jnp.asarray(data, float), "data")
    shape = fitted.reference.center.shape
    if points.shape[1:] != shape or len(points) < 4:
        raise ValueError(
            f"`data` must be at least 4 points of shape {shape}, as those learned "
            f"from, stacked on axis 0, but got shape {points.shape}."
        )
    numbers, columns = (fitted.about.get(n) for n in ("atomic_numbers", "columns"))
    return Dataset(
        points, None, fitted.group, species=numbers and symbols_of(numbers),
        columns=columns and tuple(columns),
    )  # fmt: skip
