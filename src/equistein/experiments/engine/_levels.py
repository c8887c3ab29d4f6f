"""What figures compare with: numbers and densities of the floor."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from equistein.runs import FLOOR, Outcome

Shown = Sequence[tuple[Any, Outcome]]
"""The entries that have an outcome, with it; their labels and colors are filled in."""

Level = Callable[[Shown], tuple[float, str] | None]
"""What gives a number to compare with, and what it is."""


def level_of_floor(metric: str) -> Level:
    """Return the level that the floor has of a metric, on average."""

    def level(shown: Shown) -> tuple[float, str] | None:
        for entry, outcome in shown:
            if entry.name == FLOOR and metric in outcome.metrics:
                return float(outcome.metrics[metric].mean()), entry.label
        return None

    return level


def level_of_models(metric: str, label: str) -> Level:
    """Return the level that a metric of the first model sets for all."""

    def level(shown: Shown) -> tuple[float, str] | None:
        for entry, outcome in shown:
            if entry.name != FLOOR and metric in outcome.metrics:
                return float(outcome.metrics[metric].mean()), label
        return None

    return level


def density_of_floor(
    array: str, limits: tuple[float, float]
) -> Callable[[Any, Shown], tuple[np.ndarray, np.ndarray] | None]:
    """Return the density of an array of the floor, to draw over histograms."""

    def density(config: Any, shown: Shown) -> tuple[np.ndarray, np.ndarray] | None:
        for entry, outcome in shown:
            if entry.name == FLOOR:
                values = outcome.arrays[array]
                heights, edges = np.histogram(values, np.linspace(*limits, 65))
                width = edges[1] - edges[0]
                return (edges[1:] + edges[:-1]) / 2, heights / (values.size * width)
        return None

    return density
