"""Curves of what several runs recorded alike."""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from equistein.runs._folder import RunFolder
from equistein.runs._metric_words import in_words
from equistein.runs._page import PageFigure, Picture

_MOST_FIGURES = 4
_MOST_CURVES = 12
_COUNTED = ("step", "seed_index", "epoch", "evaluations", "scale")  # no results
Curves = dict[str, dict[str, tuple[np.ndarray, np.ndarray]]]
"""For each column and each entry the steps, and the values `(seed, record)`."""


def history_figures(
    folders: Mapping[str, RunFolder], labels: Mapping[str, str]
) -> list[PageFigure]:
    """Return curves of the columns of history.jsonl that vary in all runs.

    Args:
        folders: The runs, by what they are called.
        labels: What an entry of a run is called, by `RUN: ENTRY`.
    """
    found = {name: recorded(folder) for name, folder in folders.items()}
    shared = [
        column for column in next(iter(found.values()))
        if all(_varies(curves.get(column, {})) for curves in found.values())
    ]  # fmt: skip
    return [_figure(column, found, labels) for column in shared[:_MOST_FIGURES]]


def recorded(folder: RunFolder) -> Curves:
    """Return what a run recorded, where all seeds of an entry have a finite number."""
    rows: dict[str, dict[str, dict[int, dict[float, float]]]] = {}
    path = folder.path / "history.jsonl"
    if not path.is_file():
        return {}
    with path.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            told = json.loads(line)
            if not _is_number(told.get("step")):
                continue  # an event
            for column, value in told.items():
                if column not in _COUNTED and _is_number(value):
                    of_entry = rows.setdefault(column, {})
                    of_seeds = of_entry.setdefault(str(told.get("name")), {})
                    seed = of_seeds.setdefault(told.get("seed_index", 0), {})
                    seed[float(told["step"])] = float(value)
    return {
        column: {name: _joined(seeds) for name, seeds in entries.items()}
        for column, entries in rows.items()
    }


def _joined(seeds: Mapping[int, Mapping[float, float]]) -> tuple[Any, Any]:
    """Return the steps that all seeds have, and their values."""
    every = list(seeds.values())
    steps = [step for step in every[0] if all(step in seed for seed in every)]
    values = [[seed[step] for step in steps] for seed in every]
    return np.array(steps, float), np.array(values, float).reshape(len(every), -1)


def _varies(entries: Mapping[str, tuple[np.ndarray, np.ndarray]]) -> bool:
    """Return whether a column is more than a setting that each step repeats."""
    return any(
        values.size and np.any(values != values[:, :1])
        for _, values in entries.values()
    )


def _figure(
    column: str, found: Mapping[str, Curves], labels: Mapping[str, str]
) -> PageFigure:
    from equistein.plotting import curves, figure_file  # loads matplotlib

    series = {}
    for name, columns in found.items():
        for entry, (steps, values) in columns[column].items():
            if len(steps):
                series[labels.get(f"{name}: {entry}", f"{name}: {entry}")] = (
                    steps, values,
                )  # fmt: skip
    most = dict(list(series.items())[:_MOST_CURVES])
    drawn = figure_file(curves(most, in_words(column)), "png", dpi=110)
    caption = f"{in_words(column)}: mean and range over the seeds."
    if len(series) > len(most):
        caption += f" The first {len(most)} of {len(series)} curves."
    caption = caption[0].upper() + caption[1:]
    return PageFigure(f"history of {column}", [Picture(drawn)], "", caption)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
