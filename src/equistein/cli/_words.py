"""What the report of a run says, from what its config.json describes."""

import pathlib
from collections.abc import Mapping
from typing import Any

from equistein.cli._fit_settings import FIT_SETTINGS
from equistein.experiments import EXPERIMENTS
from equistein.models import Problem
from equistein.runs import config_from_json, config_to_json, flags, Words

_LIKELY = (
    "Samples drawn from fresh starts, compared with one half of the data by their "
    "invariant features. The log-likelihood of held-out points, in nats, rests on log "
    "Z by annealed importance sampling, whose error bound is beside it. AUROC: the "
    "chance that a held-out point scores higher than a point drawn uniformly from the "
    "data's box."
)
_DENOISED = (
    "Samples by reverse diffusion, compared with one half of the data by a smooth "
    "histogram of their distances. The denoising loss, over all levels of noise, is "
    "better the lower it is. Stable atoms have bonds, by a table of lengths of H, "
    "C, N, O and F, that sum to their valence; valid molecules are those that RDKit "
    "accepts; novel ones are not in the data. Strain is the energy in kcal/mol that "
    "relaxation by the force field MMFF94 takes out of valid molecules, median and "
    "90th percentile of up to 200; displacement is how far, in Å, it moves their "
    "atoms. Bonds and angles are means; rings are counts a molecule."
)
_FORCES = (
    " Errors of forces, of a component in eV/Å, and of energies, in meV an atom "
    "without their constant, are means of absolute values over held-out frames; the "
    "error of zero is what no forces at all would have."
)
_BLURRED = " A graph network's are those of atoms blurred by the least noise."
_WITH_FORCES = (
    "held_out_force_error",
    "held_out_energy_error",
    "energy_distance_of_features",
)
_CAPTIONS = {
    "features": "All invariant features of the data and of the samples.",
    "molecules": "New molecules, with the bonds that greedy steps infer, or RDKit "
    "where there are other elements than H, C, N, O and F.",
    "turned": "New molecules, to turn with the mouse.",
    "shapes": "Strain, displacement, rings, bonds and angles of valid molecules: the "
    "data's, and new ones'.",
    "energy_gap": "The gap that contrastive divergence closes.",
    "denoising_loss": "The loss of denoising.",
    "configurations": "Configurations from the data, and new ones.",
    "columns": "Each column of the table, the data's and the samples'. Where a "
    "symmetry mixes columns, samples follow it and data need not.",
    "samples": "The data, and new samples; those of each class by themselves.",
}
_HEADLINES = (
    "held_out_log_likelihood",
    "held_out_denoising_loss",
    "held_out_accuracy",
    "validity",
    "molecule_stability",
    "energy_distance_of_features",
    "w1_of_a_feature",
)


def words_of(described: Mapping[str, Any]) -> Words:
    """Return what the report of a run or a fit says, from its config.json."""
    if described.get("command") == "fit":
        return words_of_fit(described)
    if described.get("command") == "sweep":
        return words_of_sweep(described)
    name = str(described.get("experiment"))
    if name not in EXPERIMENTS:
        return Words(title=name)
    experiment = EXPERIMENTS[name]
    config = next(iter(experiment.presets.values()))
    try:
        config = config_from_json(config, described.get("config"))
    except (TypeError, ValueError):
        pass  # settings of another version: the words of this one's defaults
    seed, preset = described.get("seed", 0), str(described.get("preset"))
    return experiment.words(config, preset, seed)


def words_of_fit(described: Mapping[str, Any]) -> Words:
    """Return what the report of a fit says."""
    problem, shape = described.get("problem", {}), tuple(described.get("shape", ()))
    kind, count, num_points = "An energy", "", described.get("num_points")
    if described.get("num_classes"):
        kind = "A joint energy of points and classes"
    if num_points:
        count = f"{num_points - described['num_held_out']} of {num_points} "
    named = ""
    if described.get("columns"):
        named = f" Columns: {', '.join(map(str, described['columns']))}."
    if described.get("classes"):
        named += f" Classes: {', '.join(map(str, described['classes']))}."
    note = _DENOISED if problem.get("network") == "graph" else _LIKELY
    if problem.get("kelvin"):
        note += _FORCES + (_BLURRED if problem.get("network") == "graph" else "")
    return Words(
        title=f"equistein fit: {pathlib.Path(str(described.get('data'))).name}",
        lead=f"{kind} with the symmetry {problem.get('group')}, learned from {count}"
        f"points of shape {shape}; the others are held out.{named}",
        notes={"model": note},
        captions=_CAPTIONS,
        headlines=_WITH_FORCES if problem.get("kelvin") else _HEADLINES,
        command=_command_of_fit(described),
        floor="data",
        floor_note="The floor compares as many points of the other half of the data "
        "with the same half.",
    )


def _command_of_fit(described: Mapping[str, Any]) -> list[str]:
    """Return the words of the command that fits this, none of a damaged config."""
    problem, settings = described.get("problem"), described.get("settings")
    if not isinstance(problem, dict) or not isinstance(settings, dict):
        return []
    usual = FIT_SETTINGS.get(str(problem.get("network")), FIT_SETTINGS["features"])
    return [
        "equistein", "fit", str(described.get("data")), "--group",
        str(problem.get("group")),
        *flags(problem, config_to_json(Problem(group=str(problem.get("group"))))),
        *flags(settings, config_to_json(usual)),
    ]  # fmt: skip


def words_of_sweep(described: Mapping[str, Any]) -> Words:
    """Return what the report of a sweep says."""
    over = ", ".join(map(str, described.get("over", ())))
    arguments = " ".join(map(str, described.get("arguments", ())))
    return Words(
        title=f"equistein sweep: {arguments}",
        lead=f"Runs for all combinations of {over}. A row is all runs that differ in "
        "the seed alone; table.csv has each of them, members/ their own reports.",
        floor="exact samples, or data",
    )
