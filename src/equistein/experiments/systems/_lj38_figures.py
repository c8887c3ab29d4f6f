"""The figures of the cluster of 38 particles."""

from collections.abc import Callable
from typing import Any

import numpy as np

from equistein.experiments.engine._figures import AbstractFigure, Curves, Own, Shown
from equistein.experiments.systems._convergence import (
    Estimate,
    fcc_weight,
    heat_capacity,
)
from equistein.experiments.systems._funnels import minima
from equistein.plotting import error_bars, molecules
from equistein.runs import Outcome

LABELS = {"fcc": "the fcc start", "liquid": "the liquid"}
"""The starts, and what figures and sentences call them."""

_MELTING = 0.166
_ARGON = 3.82  # Angstrom, the pair minimum
_STICK = 1.25  # of it, the longest line
_TEMPERATURE = "temperature, in units of the pair energy"


def _over_temperatures(
    label: str,
    estimate: Callable[[Any, Outcome], Estimate],
    marks: dict[str, float],
) -> Callable[[Any, Shown], Any]:
    """Return what draws an estimate of each start over the temperature."""

    def draw(config: Any, shown: Shown) -> Any:
        temperatures, series = np.asarray(config.temperatures), {}
        for entry, outcome in shown:
            found = estimate(config, outcome)
            series[entry.label] = temperatures, found.values, found.errors
        colors = {entry.label: entry.color for entry, _ in shown}
        return error_bars(
            series, label, x_label=_TEMPERATURE, marks=marks, colors=colors
        )

    return draw


def _minima(config: Any, shown: Shown) -> Any:
    """Return the two lowest minima, and three relaxed configurations of each start."""
    ends = [outcome.arrays["coldest"].reshape(-1, 38, 3)[:3] for _, outcome in shown]
    points = np.concatenate([minima(), *ends])
    gaps = np.linalg.norm(points[:, :, None] - points[:, None], axis=-1)
    lines = (gaps > 0) & (gaps < _STICK)
    return molecules(["Ar"] * 38, _ARGON * points, lines.astype(int))


FIGURES: tuple[AbstractFigure, ...] = (
    Own(
        "heat-capacity",
        _over_temperatures(
            "heat capacity of the cluster / k",
            lambda config, outcome: heat_capacity(
                outcome, np.asarray(config.temperatures)
            ),
            {"melting, Neirotti et al. (2000)": _MELTING},
        ),
        caption="The heat capacity, 3N/2 of it the kinetic energy's, with standard "
        "errors over the ladders. Where the two starts differ by more, neither is to "
        "be believed.",
    ),
    Own(
        "fcc-weight",
        _over_temperatures(
            "weight of the fcc funnel",
            lambda config, outcome: fcc_weight(outcome),
            {"melting, Neirotti et al. (2000)": _MELTING},
        ),
        caption="The fraction of configurations whose relaxed ones have a "
        "bond-orientational order Q4 above .1 (.19 at the octahedron, .00 at the "
        "icosahedral minimum, mostly below .06 in the liquid), with standard errors.",
    ),
    Curves(
        "rejections",
        lambda outcome: outcome.arrays["rejections"],
        "rate of refused swaps",
        x=lambda outcome: outcome.arrays["between"],
        x_label=_TEMPERATURE,
        limits=(0.0, 1.0),
        caption="How often neighbors refused to swap, at the mean of their two "
        "temperatures: mean and range over the seeds.",
    ),
    Curves(
        "relaxation",
        "fcc_weight",
        "fcc weight, over all temperatures",
        x="evaluations",
        x_label="score evaluations of a ladder",
        limits=(0.0, 1.0),
        caption="The weight of the fcc funnel averaged over all temperatures, while "
        "the ladders run: starts that are forgotten give curves that meet.",
    ),
    Own(
        "minima",
        _minima,
        caption="The truncated octahedron, the lowest icosahedral minimum, and to the "
        "right of them relaxed configurations of the coldest temperature, three of "
        "each start.",
    ),
)
