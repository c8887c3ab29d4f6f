"""The report of a fit: the same page from Python and from the command line."""

import pathlib
from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import ArrayLike

from equistein._arrays import as_keys
from equistein._numbers import check_integers
from equistein._types import Key
from equistein.models._dataset import Dataset
from equistein.models._judge import judge, Judgement
from equistein.molecules import symbols_of
from equistein.runs import Metric, metrics_json, Outcome, ReportText, write_page
from equistein.training import Fitted

FIT_METRICS: Mapping[str, Metric] = {
    "held_out_log_likelihood": Metric(
        "log-likelihood of held-out points", "higher", "nats"
    ),
    "held_out_denoising_loss": Metric("loss of denoising held-out points", "lower"),
    "held_out_accuracy": Metric("accuracy on held-out points", "higher"),
    "calibration_error": Metric("expected calibration error", "lower"),
    "held_out_force_error": Metric(
        "error of forces of held-out frames", "lower", "eV/Å"
    ),
    "held_out_energy_error": Metric(
        "error of energies of held-out frames", "lower", "meV an atom"
    ),
    "energy_distance_of_features": Metric(
        "distance of invariant features (energy distance)", "lower"
    ),
    "w1_of_a_feature": Metric("distance of an invariant feature (W1)", "lower"),
    "validity": Metric("valid molecules", "higher"),
    "atom_stability": Metric("atoms with the bonds of their valence", "higher"),
    "molecule_stability": Metric(
        "molecules all of whose atoms have the bonds of their valence", "higher"
    ),
    "bits_per_dimension": Metric("bits a dimension", "lower"),
    "loss": Metric("loss at the end", "lower"),
}

_LIKELIHOOD = (
    "Samples drawn from fresh starts are compared with one half of the data by their "
    "invariant features. The log-likelihood of held-out points, in nats, uses log Z by "
    "annealed importance sampling, whose error bound is beside it. AUROC is the "
    "probability that a held-out point scores higher than a point drawn uniformly from "
    "the data's box."
)
_DENOISING = (
    "Samples by reverse diffusion are compared with one half of the data by a smooth "
    "histogram of their distances. Stable atoms have bonds, by a table of lengths of "
    "H, C, N, O and F, that sum to their valence; valid molecules are those that RDKit "
    "accepts; novel ones are not in the data. Strain is the energy in kcal/mol that "
    "relaxation by the force field MMFF94 removes from valid molecules, median and "
    "90th percentile of up to 200; displacement is how far, in Å, it moves their "
    "atoms. Bonds and angles are means; rings are counts a molecule."
)
_FORCES = (
    " Errors of forces (of a component) and of energies (without their constant) are "
    "mean absolute values over held-out frames; the error of zero is that of no forces "
    "at all."
)
_BLURRED = " Those of a graph network are for atoms blurred by the smallest noise."
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
_HEADLINES = (
    "held_out_force_error", "held_out_energy_error", "held_out_log_likelihood",
    "held_out_denoising_loss", "held_out_accuracy", "validity", "molecule_stability",
    "energy_distance_of_features", "w1_of_a_feature", "loss",
)  # fmt: skip
_MOST = 5  # headlines


def fit_text(
    fitted: Fitted,
    metrics: Mapping[str, Any],
    title: str = "A learned density",
    lead: str = "",
    *,
    kelvin: float | None = None,
) -> ReportText:
    """Return the text of the report of a fit.

    Args:
        fitted: The learned density.
        metrics: The numbers of its model.
        title: The title.
        lead: What was fitted; by default the energy, its symmetry and its points.
        kelvin: The temperature at which energies and forces were learned, if any.
    """
    epochs = len(next(iter(fitted.history.values()), ()))
    is_denoised = "denoising_loss" in fitted.history
    note = _DENOISING if is_denoised else _LIKELIHOOD
    if kelvin is not None:
        note += _FORCES + (_BLURRED if is_denoised else "")
    shown = [name for name in _HEADLINES if name in metrics]
    return ReportText(
        title=title,
        lead=lead
        or f"{type(fitted.energy).__name__} with the symmetry "
        f"{fitted.group!r}, of points of shape {fitted.reference.center.shape}, "
        f"learned in {epochs} epochs.",
        notes={"model": note},
        captions=_CAPTIONS,
        floor="data",
        floor_note="The floor compares as many points of the other half of the data "
        "with the same half.",
        headlines=shown[:_MOST],
    )


def write_fit_report(
    path: pathlib.Path,
    fitted: Fitted,
    data: ArrayLike | None,
    key: Key,
    num_samples: int,
) -> None:
    """Write the page of `Fitted.report`, which explains the arguments."""
    key = as_keys(key)
    check_integers("`report`", num_samples=num_samples)
    if data is None:
        outcomes, figures = {"model": _without_data(fitted)}, {}
    else:
        judgement = _judged(fitted, data, key, num_samples)
        outcomes, figures = judgement.outcomes, judgement.figures
    settings = {
        "group": repr(fitted.group),
        "energy": type(fitted.energy).__name__,
        "generator": type(fitted.generator).__name__,
    }
    write_page(
        path, fit_text(fitted, outcomes["model"].metrics),
        metrics_json(outcomes, (), FIT_METRICS), page_figures(figures), settings,
    )  # fmt: skip


def page_figures(figures: Mapping[str, Any]) -> dict[str, str | bytes]:
    """Return drawn figures as parts of a page."""
    from equistein.plotting import figure_file, Page  # loads matplotlib

    return {
        name: figure.html if isinstance(figure, Page) else figure_file(figure, "png")
        for name, figure in figures.items()
    }


def _without_data(fitted: Fitted) -> Outcome:
    loss = fitted.history.get("loss", np.zeros(0))
    metrics = {"loss": loss[-1:]} if len(loss) else {}
    return Outcome(metrics=metrics, samples=np.zeros((0, 1)), events=fitted.events)


def _judged(fitted: Fitted, data: ArrayLike, key: Key, num_samples: int) -> Judgement:
    points, shape = jnp.asarray(data, float), fitted.reference.center.shape
    if points.shape[1:] != shape or len(points) < 4:
        raise ValueError(
            f"`data` must be at least 4 points of shape {shape}, as those learned "
            f"from, stacked on axis 0, but got shape {points.shape}."
        )
    if not bool(jnp.all(jnp.isfinite(points))):
        raise ValueError(
            "`data` must be finite, but got NaN or infinity: leave those points out."
        )
    numbers = fitted.about.get("atomic_numbers")
    species = tuple(symbols_of(numbers)) if numbers else None
    columns = fitted.about.get("columns")
    dataset = Dataset(
        points, None, fitted.group, species=species,
        columns=tuple(columns) if columns else None,
    )  # fmt: skip
    return judge(key, fitted, dataset, num_samples=num_samples)
