"""What the experiments on particle systems show and conclude."""

from collections.abc import Mapping

import numpy as np

from equistein.experiments.engine._figures import (
    AbstractFigure,
    Bars,
    Configurations,
    Curves,
    Histograms,
)
from equistein.experiments.systems._config import SystemConfig
from equistein.experiments.systems._system import System
from equistein.runs import FLOOR, Outcome

_NUM_STATES = 5
_PLAIN = ("mala", "nuts")  # the samplers that everyone has


def conclusion(config: SystemConfig, outcomes: Mapping[str, Outcome]) -> str:
    """Return which samplers are best at the end, and whether plain ones are as good."""
    ends = {
        name: outcome.metrics["energy_w2"]
        for name, outcome in outcomes.items()
        if outcome.history
    }
    if not ends:
        return ""
    best = min(ends, key=lambda name: ends[name].mean())
    # What is at the floor is as good as what is below it.
    floor = outcomes[FLOOR].metrics["energy_w2"] if FLOOR in outcomes else ends[best]
    level = max(ends[best], floor, key=np.mean)
    as_good = [name for name in ends if name != best and _reaches(ends[name], level)]
    spent = outcomes[best].metrics["evaluations"].mean()
    text = f"Nearest to the reference after {spent:,.0f} evaluations a particle is "
    text += (
        f"{best}, at a Wasserstein-2 distance of the energies of {_range(ends[best])}"
    )
    if FLOOR in outcomes:
        text += f"; as many exact samples are at {floor.mean():.3g}"
    one = ends[best].size == 1
    seeds = "one seed" if one else f"{ends[best].size} seeds"
    text += f" ({config.num_particles:,} particles, {seeds}). "
    near = "As low as exact samples, of one seed, which tells no error"
    if not one:
        near = "Within two standard errors of it, or of exact samples"
    text += f"{near}: {', '.join(as_good) or 'none'}."
    for name in _PLAIN:
        if name in ends and name != best:
            is_good = "one of them" if name in as_good else "worse"
            text += f" {name.upper()} is {is_good}: {_range(ends[name])}."
    return text


def _reaches(ours: np.ndarray, level: np.ndarray) -> bool:
    """Return whether values are as low as others, within two standard errors."""
    if min(ours.size, level.size) < 2:
        return bool(ours.mean() <= level.mean())
    error = np.hypot(*(x.std(ddof=1) / x.size**0.5 for x in (ours, level)))
    return bool(ours.mean() - level.mean() <= 2 * error)


def _range(values: np.ndarray) -> str:
    return f"{values.mean():.3g} ({values.min():.3g} to {values.max():.3g})"


def compare(config: SystemConfig, outcomes: Mapping[str, Outcome]) -> dict:
    """Return after how many evaluations each sampler has MALA's final quality.

    The smallest budget at which the energy distance, averaged over the seeds, is
    within a tenth of MALA's at its last; infinite where it never is.
    """
    if "mala" not in outcomes:
        return {}
    level = 1.1 * outcomes["mala"].history["energy_w2"][:, -1].mean()

    def first(outcome: Outcome) -> float:
        good = outcome.history["energy_w2"].mean(axis=0) <= level
        spent = outcome.history["step"].mean(axis=0)
        return float(np.min(np.where(good, spent, np.inf)))

    return {
        name: {"evaluations_to_mala": np.full(config.num_seeds, first(outcome))}
        for name, outcome in outcomes.items()
        if outcome.history
    }


def figures(system: System) -> tuple[AbstractFigure, ...]:
    """Return the figures."""

    def curve(name: str, metric: str, label: str, caption: str) -> Curves:
        return Curves(
            name, metric, label, level=metric, caption=caption,
            x_label="score evaluations a particle", log_x=True, log_y=True,
            limits=lambda level: (None, 100 * level),
        )  # fmt: skip

    def histogram(
        name: str, label: str, limits: tuple[float, float], bins: int
    ) -> Histograms:
        return Histograms(name, name, label, limits=limits, bins=bins, line_of=FLOOR)

    return (
        curve(
            "energy-w2",
            "energy_w2",
            "Wasserstein-2 of the energies",
            "Wasserstein-2 distance of the energies from those of the reference, "
            "against the evaluations of the score that each particle took: mean and "
            "range over the seeds. The line is what as many independent exact samples "
            "reach.",
        ),
        curve(
            "distance-tv",
            "distance_tv",
            "total variation of the distances",
            "Total variation of the histograms of pair distances (200 bins).",
        ),
        histogram("energies", "energy", system.energies, 64),
        histogram("distances", "distance of two particles", system.limits, 80),
        Configurations(
            "configurations", 8, caption="Samples of each sampler, not aligned."
        ),
        Bars(
            "states",
            [f"state_{i + 1}" for i in range(_NUM_STATES)],
            "fraction of the samples",
        ),
    )
