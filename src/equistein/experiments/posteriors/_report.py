"""What the experiments on posteriors show and conclude."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from equistein.experiments.engine._figures import (
    AbstractFigure,
    Bars,
    Boxes,
    Curves,
    Histograms,
)
from equistein.runs import FLOOR, Outcome

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
            caption=f"The largest error of the weight of a copy, told by {copies}: all "
            "are equally likely, and where draws are expanded that is by construction.",
        ),
    )
