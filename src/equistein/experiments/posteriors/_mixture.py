"""`mixture`: components of a mixture whose labels mean nothing."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from equistein.experiments.engine._experiment import (
    Entry,
    EXACT,
    Experiment,
    Trial,
)
from equistein.experiments.engine._figures import Own, Shown
from equistein.experiments.posteriors._config import PAPER, SMOKE
from equistein.experiments.posteriors._entries import Assembly, entries
from equistein.experiments.posteriors._mixture_config import MixtureConfig
from equistein.experiments.posteriors._report import compare, conclude, figures
from equistein.experiments.posteriors._samplers import annealed, Found, tempering
from equistein.plotting import error_bars
from equistein.runs import Outcome

# Neal (1999), Erroneous results in "Marginal likelihood from the Gibbs output". Chib
# (1995) has -224.138: his estimate lacks most of the factor 3! of the labels.
_PUBLISHED = {3: -226.791}
_SWEPT = {"tempering": tempering, "smc": annealed}


def _entries(config: MixtureConfig) -> list[Entry]:
    assemblies = {k: Assembly(config, config.model(k)) for k in config.others}

    def evidence(trial: Trial, name: str, found: Found) -> dict[str, Any]:
        """Return the log evidence and its error for each number of components."""
        if name not in _SWEPT:
            return {}
        rows = []
        for k in config.evidence_components:
            numbers = found.numbers
            if k in assemblies:
                sample = _SWEPT[name](config, assemblies[k].reading)
                numbers = sample(
                    trial.key(k), assemblies[k].start(trial.key(0))
                ).numbers
            rows.append([numbers["log_evidence"], numbers["log_evidence_error"]])
        return {"evidence": rows}

    return entries(config, config.model(), evidence)


def _draw_evidence(config: MixtureConfig, shown: Shown) -> Any | None:
    places, series, colors = np.array(config.evidence_components), {}, {}
    for entry, outcome in shown:
        if "evidence" in outcome.arrays:
            values, errors = np.moveaxis(outcome.arrays["evidence"], -1, 0)
            error = np.sqrt(np.mean(errors**2, axis=0) / len(errors))
            series[entry.label] = places, values.mean(axis=0), error
            colors[entry.label] = entry.color
    if not series:
        return None
    known = {k: value for k, value in _PUBLISHED.items() if k in places}
    if known and config.data == "galaxies":
        where, values = np.array(list(known)), np.array(list(known.values()))
        series["Neal (1999)"] = where, values, np.full(len(known), np.nan)
        colors["Neal (1999)"] = EXACT
    return error_bars(
        series, "log evidence", x_label="number of components", colors=colors
    )


def _conclude(config: MixtureConfig, outcomes: Mapping[str, Outcome]) -> str:
    text = conclude(config, outcomes)
    if not text or not {"tempering", "smc"} <= set(outcomes):
        return text
    ours, theirs = (outcomes[name].arrays["evidence"] for name in _SWEPT)
    gaps = np.abs(ours[..., 0] - theirs[..., 0])
    gaps = gaps / np.hypot(ours[..., 1], theirs[..., 1])
    return (
        f"{text} Over {', '.join(map(str, config.evidence_components))} components the "
        f"two log evidences differ by at most {gaps.max():.2g} joint standard errors, "
        f"with errors of at most {max(ours[..., 1].max(), theirs[..., 1].max()):.2g}."
    )


_QUICK = MixtureConfig()
MIXTURE = Experiment(
    name="mixture",
    figure="beyond the paper",
    headlines=("energy_distance_ratio", "log_evidence", "evaluations_to_1000"),
    summary="the velocities of 82 galaxies as a mixture whose labels can be exchanged: "
    "tempering, sequential Monte Carlo, NUTS and SVGD, and the evidence",
    presets={
        "smoke": dataclasses.replace(
            _QUICK, **SMOKE, num_components=2, evidence_components=(2,)
        ),
        "quick": _QUICK,
        "paper": dataclasses.replace(
            _QUICK, **PAPER, evidence_components=(2, 3, 4, 5, 6)
        ),
    },
    entries=_entries,
    one_a_core=True,
    figures=(
        *figures("mean of the first component", "the order of the means"),
        Own(
            "evidence",
            _draw_evidence,
            caption="The log evidence over the number of components, with the stated "
            "standard errors of the mean over the seeds, beside the published value.",
        ),
    ),
    compare=compare,
    conclude=_conclude,
)  # fmt: skip
