"""The figures that experiments share, declared by what they show of each entry."""

from collections.abc import Callable
from typing import Any

import numpy as np

from equistein import plotting
from equistein.runs import FLOOR, Outcome
from experiments._engine import Figure, Shown

Values = str | Callable[[Outcome], np.ndarray | None]
"""The name of an array of an outcome, or what makes one; None where there is none."""

Limits = tuple[float | None, float | None]
"""The ends of an axis; None is that of the values."""


def curves(
    name: str,
    values: Values,
    label: str,
    *,
    x: Values = "step",
    level: str = "",
    level_label: str = "",
    limits: Limits | Callable[[float], Limits] | None = None,
    caption: str = "",
    **look: Any,
) -> Figure:
    """Return curves over steps: the mean over the seeds, and their range as a band.

    Values are a column of the history, or made as `(seed, record)` of an outcome, and
    likewise x. Records that a seed did not look at, which are NaN, are left out. The
    mean of the metric `level` is a line: of the floor, or if it has a label of the
    first entry with the metric; the range of values shown may be made from it.
    """

    def series(outcome: Outcome) -> tuple[np.ndarray, np.ndarray] | None:
        found = _found(outcome.history, outcome, values)
        steps = _found(outcome.history, outcome, x)
        if found is None or steps is None:
            return None
        seen = np.isfinite(found).all(axis=0)
        return np.atleast_2d(steps).mean(axis=0)[seen], found[:, seen]

    def draw(config: Any, shown: Shown) -> Any | None:
        found = rows(shown, series)
        if not found:
            return None
        line, ends = _line(shown, level, level_label), limits
        if callable(ends):
            ends = ends(line[0]) if line else None
        return plotting.curves(
            found, label, limits=ends, colors=_colors(shown), exact=line, **look
        )

    return Figure(
        name, draw, caption or _sentence(f"{label}: mean and range over seeds.")
    )


def histograms(
    name: str,
    values: Values,
    label: str,
    *,
    limits: tuple[float, float] | Callable[[Any], tuple[float, float]] | None = None,
    bins: int = 60,
    exact: Callable[[Any], tuple[Any, Any]] | None = None,
    line_of: str = "",
    caption: str = "",
) -> Figure:
    """Return histograms of a number, a panel for each entry that has it.

    A line is the exact density, as values and the density at them, or that of the
    entry `line_of` within the limits. These may be made from the configuration.
    """

    def draw(config: Any, shown: Shown) -> Any | None:
        found = {e.name: _found(out.arrays, out, values) for e, out in shown}
        found = {k: v for k, v in found.items() if v is not None and len(v)}
        if not found:
            return None
        ends: Any = limits(config) if callable(limits) else limits
        line: Any = tuple(map(np.asarray, exact(config))) if exact else None
        if line_of in found:
            line = _density(found[line_of], ends, min(bins, 64))
        labels = {entry.name: entry.label for entry, _ in shown}
        return plotting.histograms(
            {labels[key]: v for key, v in found.items()}, line, label, bins=bins,
            limits=ends, colors=_colors(shown),
        )  # fmt: skip

    return Figure(name, draw, caption or _sentence(f"{label}, of all seeds together."))


def _density(values: np.ndarray, limits: Any, bins: int) -> tuple[np.ndarray, Any]:
    """Return places, and the density of values there."""
    low, high = limits or (values.min(), values.max())
    edges = np.linspace(low, high, bins + 1)
    heights, _ = np.histogram(values, edges)
    density = heights / (values.size * (edges[1] - edges[0]))
    return (edges[1:] + edges[:-1]) / 2, density


def boxes(
    name: str, metric: str, label: str, *, log: bool = False, caption: str = ""
) -> Figure:
    """Return boxes of a metric, a point a seed, with the floor as a line.

    Its axis may be logarithmic, where all values are positive.
    """

    def draw(config: Any, shown: Shown) -> Any | None:
        models = [pair for pair in shown if pair[0].name != FLOOR]
        groups = rows(models, lambda outcome: outcome.metrics.get(metric))
        if not groups:
            return None
        positive = all(np.all(values > 0) for values in groups.values())
        return plotting.boxes(
            groups, label, colors=_colors(shown), exact=_line(shown, metric),
            log=log and positive,
        )  # fmt: skip

    usual = f"{label}, a point a seed; the line is the floor."
    return Figure(name, draw, caption or _sentence(usual))


def configurations(
    num: int, reach: float | None = None, colors: str = "", caption: str = ""
) -> Figure:
    """Return configurations of particles, spread evenly over the samples of each entry.

    `reach` is half the side of a panel, by default what holds nearly all particles;
    the array `colors` sets their colors in place of those of the entries.
    """

    def draw(config: Any, shown: Shown) -> Any | None:
        if not shown:
            return None
        few = min(num, *(len(outcome.samples) for _, outcome in shown))

        def pick(outcome: Outcome, values: np.ndarray) -> np.ndarray:
            return values[np.linspace(0, len(outcome.samples) - 1, few).astype(int)]

        shades = [
            pick(out, out.arrays[colors]) if colors else [entry.color] * few
            for entry, out in shown
        ]
        found = rows(shown, lambda outcome: pick(outcome, outcome.samples))
        first = np.abs(shown[0][1].samples)
        side = reach or 1.2 * float(np.quantile(first, 0.999))
        return plotting.configurations(found, side, np.stack(shades))

    usual = "Configurations as they were drawn, not aligned."
    return Figure("configurations", draw, caption or usual)


def rows(shown: Shown, of: Callable[[Outcome], Any | None]) -> dict[str, Any]:
    """Return what each entry has to show, by its label, where it has something."""
    found = {entry.label: of(outcome) for entry, outcome in shown}
    return {label: values for label, values in found.items() if values is not None}


def _line(shown: Shown, metric: str, label: str = "") -> tuple[float, str] | None:
    """Return the line to compare with, and what it is, or None."""
    for entry, outcome in shown:
        if metric in outcome.metrics and (label or entry.name == FLOOR):
            return float(outcome.metrics[metric].mean()), label or entry.label
    return None


def _found(arrays: dict, outcome: Outcome, values: Values) -> np.ndarray | None:
    return arrays.get(values) if isinstance(values, str) else values(outcome)


def _colors(shown: Shown) -> dict[str, int]:
    return {entry.label: entry.color for entry, _ in shown}


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:]
