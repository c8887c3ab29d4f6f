"""`mixture`: components of a mixture whose labels mean nothing."""

import dataclasses
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from equistein.plotting import error_bars
from equistein.runs import FLOOR, Metric, Outcome
from experiments._engine import Entry, EXACT, Experiment, Trial
from experiments._figures import (
    AbstractFigure,
    Bars,
    Boxes,
    Curves,
    Histograms,
    Own,
    Shown,
)
from experiments._mixture_model import (
    Mixture,
    simulated_velocities,
    velocities,
    velocities_in_mass,
)
from experiments._posterior_samplers import (
    annealed,
    Assembly,
    entries,
    Found,
    PAPER,
    PosteriorConfig,
    SMOKE,
    tempering,
)

_NUM_SIMULATED = 82


@dataclasses.dataclass(frozen=True, kw_only=True)
class MixtureConfig(PosteriorConfig):
    """Settings of `mixture`.

    Attributes:
        num_components: The components of the mixture that is sampled.
        data: The velocities as published, or with the misprint of R's MASS, or
            simulated from a mixture that is known.
        evidence_components: The numbers of components whose evidence is compared.
    """

    num_components: int = 3
    data: Literal["galaxies", "mass", "simulated"] = "galaxies"
    evidence_components: tuple[int, ...] = (2, 3, 4)

    @property
    def others(self) -> list[int]:
        """The numbers of components whose evidence alone is measured."""
        return [k for k in self.evidence_components if k != self.num_components]

    def model(self, num_components: int | None = None) -> Mixture:
        """Return the model, of another number of components if it is given."""
        simulated = self.data == "simulated"
        data = {
            "galaxies": velocities,
            "mass": velocities_in_mass,
            "simulated": lambda: simulated_velocities(
                self.num_components, _NUM_SIMULATED
            ),
        }[self.data]()
        return Mixture(data, num_components or self.num_components, simulated)


_GOOD = 1.5  # times the distance of as many exact samples


def compare(config: Any, outcomes: Mapping[str, Outcome]) -> dict[str, dict]:
    """Return how far the two log evidences are apart, and what NUTS costs more."""
    del config
    found: dict[str, dict] = {}
    metrics = {name: outcome.metrics for name, outcome in outcomes.items()}
    if {"tempering", "smc"} <= set(metrics):
        ours, theirs = metrics["tempering"], metrics["smc"]
        gap = np.abs(ours["log_evidence"] - theirs["log_evidence"])
        errors = np.hypot(ours["log_evidence_error"], theirs["log_evidence_error"])
        found["smc"] = {"log_evidence_gap_in_errors": gap / errors}
    if {"tempering", "nuts"} <= set(metrics):
        cost = "evaluations_to_1000"
        ratio = metrics["nuts"][cost] / metrics["tempering"][cost]
        found["nuts"] = {"cost_over_tempering": ratio}
    return found


def conclude(config: Any, outcomes: Mapping[str, Outcome]) -> str:
    """Return how near the default comes, the evidence, and what NUTS and E-SVGD do."""
    del config
    metrics = {name: out.metrics for name, out in outcomes.items() if name != FLOOR}
    if "tempering" not in metrics:
        return ""
    ours = metrics["tempering"]
    ratios = ours["energy_distance_ratio"], ours["expanded_ratio"]
    good = max(ratio.mean() for ratio in ratios) <= _GOOD
    text = (
        f"After {ours['evaluations'].mean():,.0f} evaluations tempering is at "
        f"{_range(ratios[0])} times the energy distance of as many exact samples as "
        f"its draws are labelled, and {_range(ratios[1])} times expanded to whole "
        f"orbits, {'both within' if good else 'not both within'} {_GOOD:g}; the log "
        f"evidence is {ours['log_evidence'].mean():.2f} with a stated error of "
        f"{ours['log_evidence_error'].max():.2g} at most"
    )
    if "smc" in metrics:
        theirs = metrics["smc"]
        text += (
            f", and {theirs['log_evidence'].mean():.2f} with "
            f"{theirs['log_evidence_error'].max():.2g} by sequential Monte Carlo"
        )
    text += "."
    if "nuts" in metrics:
        theirs = metrics["nuts"]
        text += (
            f" An effective 1,000 draws take it "
            f"{ours['evaluations_to_1000'].mean():,.0f} evaluations, and NUTS "
            f"{_range(theirs['cost_over_tempering'])} times as many; NUTS alone is at "
            f"{_range(theirs['energy_distance_ratio'])} times the distance of exact "
            f"samples as it is labelled, and {_range(theirs['expanded_ratio'])} "
            "expanded."
        )
    if {"e-svgd", "svgd"} <= set(metrics):
        pair = [_range(metrics[name]["expanded"]) for name in ("e-svgd", "svgd")]
        text += (
            f" Expanded, E-SVGD ends at an energy distance of {pair[0]} and vanilla "
            f"SVGD at {pair[1]}."
        )
    return text


def _range(values: np.ndarray) -> str:
    return f"{values.mean():.3g} ({values.min():.3g} to {values.max():.3g})"


def figures(component: str, copies: str) -> tuple[AbstractFigure, ...]:
    """Return the figures.

    Args:
        component: What the number of a component is that is shown.
        copies: What tells the copies apart.
    """

    def curve(name: str, metric: str, label: str, caption: str) -> Curves:
        return Curves(
            name, metric, label, level=metric, caption=caption, log_x=True, log_y=True,
            x_label="score evaluations, all chains or particles together",
        )  # fmt: skip

    return (
        curve(
            "energy-distance",
            "energy_distance",
            "energy distance",
            "Energy distance of the draws, as they are labelled, to a reference that "
            "is averaged over all labels, against evaluations of the score: mean and "
            "range over the seeds. The line is what as many exact samples as the "
            "draws of tempering reach.",
        ),
        curve(
            "expanded",
            "expanded",
            "energy distance, expanded",
            "The same where each draw stands for its whole orbit: nothing is left of "
            "which labels a sampler has seen.",
        ),
        Boxes(
            "ratios",
            "expanded_ratio",
            "energy distance / exact samples",
            log=True,
            caption="The energy distance of the expanded draws over that of as many "
            "expanded exact samples, a point a seed; the line is exact samples.",
        ),
        Histograms(
            "marginals",
            "first_component",
            component,
            line_of=FLOOR,
            caption=f"{component[0].upper()}{component[1:]}, as samplers label it: of "
            "a single chain in each seed where there are chains, else of all draws. "
            "All components have the same marginal, the line; a chain that does not go "
            "through all copies shows another.",
        ),
        Bars(
            "copies",
            ["copy_error"],
            "largest error of a copy's weight",
            caption=f"The largest error of the weight of a copy, by {copies}: all "
            "are equally likely, and where draws are expanded that is by construction.",
        ),
    )


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
METRICS = {
    "copy_error": Metric("largest error of the weight of a copy", "lower"),
    "energy_distance": Metric("distance of samples (energy distance)", "lower"),
    "energy_distance_ratio": Metric(
        "energy distance over that of as many exact samples", "lower"
    ),
    "evaluations": Metric("evaluations of the score"),
    "evaluations_to_1000": Metric(
        "evaluations of the score for an effective 1,000 draws", "lower"
    ),
    "expanded": Metric("distance of all copies of samples (energy distance)", "lower"),
    "expanded_ratio": Metric(
        "the same of all copies, over that of as many exact samples", "lower"
    ),
    "log_evidence": Metric("log evidence", unit="nats"),
    "log_z_error": Metric("error of log Z", "zero"),
    "round_trips": Metric("round trips through the temperatures"),
    "truth_covered": Metric("true numbers inside intervals of 98 %"),
}

MIXTURE = Experiment(
    name="mixture",
    figure="beyond the paper",
    metrics=METRICS,
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
