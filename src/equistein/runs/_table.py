"""The headlines of a report and its table of numbers."""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

_MOST = 4  # headlines, by default
_SPREAD = ("_sd", "_min", "_max", "_num_finite")  # suffixes of the spread over seeds


@dataclasses.dataclass(frozen=True)
class Headline:
    """A number with what it is better or worse than.

    Attributes:
        metric: What is measured.
        value: The number of the best entry, rounded by its spread.
        entry: Which one that is, as figures call it.
        comparison: The numbers of others, the floor, and how many samples there are.
    """

    metric: str
    value: str
    entry: str
    comparison: str


def headlines(
    metrics: Mapping[str, Any],
    wanted: Sequence[str],
    floor_name: str,
    labels: Mapping[str, str],
) -> list[Headline]:
    """Return the headlines of a report.

    Args:
        metrics: As in metrics.json.
        wanted: The metrics to choose; if none, the first that have a direction, those
            with a floor before others.
        floor_name: What the floor is of.
        labels: What figures call entries, where that is not their name.
    """
    columns, floor = table_columns(metrics), metrics.get("floor") or {}
    chosen = [name for name in wanted if name in columns]
    if not chosen:
        directed = [name for name in columns if _better(metrics, name)]
        chosen = sorted(directed, key=lambda name: name not in floor)[:_MOST]
    made = (_headline(name, metrics, floor_name, labels) for name in chosen)
    return [each for each in made if each is not None]


def label_of(metrics: Mapping[str, Any], name: str) -> str:
    """Return what a metric is, with its unit; its name where nothing says so."""
    about = (metrics.get("about") or {}).get(name)
    if not about:
        return name.replace("_", " ")
    return f"{about['label']} ({about['unit']})" if about["unit"] else about["label"]


def rounded(value: Any, spread: Any = None) -> str:
    """Return a number to two digits of its spread, or three digits without one."""
    if not isinstance(value, int | float) or not math.isfinite(value):
        return "–"
    if not isinstance(spread, int | float) or not 0 < spread < math.inf:
        return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"
    places = min(max(0, 1 - math.floor(math.log10(spread))), 6)
    return f"{value:.{places}f} ± {spread:.{places}f}"


def table_columns(metrics: Mapping[str, Any]) -> list[str]:
    """Return the metrics of the table, without the spread of other metrics."""
    rows = [*(metrics.get("entries") or {}).values(), metrics.get("floor") or {}]
    names = dict.fromkeys(name for row in rows for name in row)
    spreads = {f"{name}{extra}" for name in names for extra in _SPREAD}
    return [name for name in names if name not in spreads]


def table_rows(
    metrics: Mapping[str, Any],
    columns: Sequence[str],
    floor_name: str,
    labels: Mapping[str, str],
) -> list[dict[str, Any]]:
    """Return the rows of the table, the floor last."""
    best = {column: _best(metrics, column) for column in columns}
    counts, made = metrics.get("num_samples") or {}, []
    for name, row in (metrics.get("entries") or {}).items():
        label = labels.get(name, name)
        made.append(
            {
                "label": label,
                "name": "" if label == name else name,
                "count": counts.get(name, ""),
                "cells": [_cell(row, c, is_best=best[c] == name) for c in columns],
                "is_floor": False,
            }
        )
    floor = metrics.get("floor") or {}
    if floor:
        cells = [_cell(floor, column) for column in columns]
        made.append(
            {"label": f"floor: {floor_name}", "name": "", "count": "", "cells": cells,
             "is_floor": True}
        )  # fmt: skip
    return made


def _better(metrics: Mapping[str, Any], name: str) -> str:
    return str(((metrics.get("about") or {}).get(name) or {}).get("better", ""))


def _values(metrics: Mapping[str, Any], name: str) -> dict[str, float]:
    """Return the finite values of a metric by entry."""
    return {
        entry: row[name]
        for entry, row in (metrics.get("entries") or {}).items()
        if isinstance(row.get(name), int | float) and math.isfinite(row[name])
    }


def _best(metrics: Mapping[str, Any], name: str) -> str | None:
    """Return the entry with the best value, where there are several."""
    values, better = _values(metrics, name), _better(metrics, name)
    if better not in ("lower", "higher") or len(values) < 2:
        return None
    return (min if better == "lower" else max)(values, key=values.__getitem__)


def _headline(
    metric: str,
    metrics: Mapping[str, Any],
    floor_name: str,
    labels: Mapping[str, str],
) -> Headline | None:
    values, floor = _values(metrics, metric), metrics.get("floor") or {}
    if not values:
        return None
    level = floor[metric] if isinstance(floor.get(metric), int | float) else None
    order, notes = _ranked(metrics, metric, values, level, floor_name)
    # Below the floor nothing is better: it is as good as exact samples.
    below = _better(metrics, metric) == "lower"
    at_floor = []
    if below and level is not None:
        at_floor = [name for name in order if values[name] <= level]
    first, best = at_floor or order[:1], order[0]
    others = [name for name in order if name not in first]
    if others:
        ends = dict.fromkeys((others[0], others[-1]))
        parts = [f"{labels.get(n, n)} {rounded(values[n])}" for n in ends]
        notes.append(f"others: {' and '.join(parts)}")
    if level is not None:
        notes.append(f"{floor_name} {rounded(level, floor.get(f'{metric}_sd'))}")
    count = (metrics.get("num_samples") or {}).get(best)
    seeds = len(metrics.get("seeds") or ())
    if count:
        in_all = f" in all, {seeds} seeds" if seeds > 1 else ""
        notes.append(f"{count} samples{in_all}")
    value = rounded(values[best], metrics["entries"][best].get(f"{metric}_sd"))
    if len(at_floor) > 1:
        notes.insert(0, "all as good as the floor")
        value = " … ".join(dict.fromkeys(rounded(values[n]) for n in (best, first[-1])))
    entry = ", ".join(labels.get(name, name) for name in first)
    return Headline(label_of(metrics, metric), value, entry, "; ".join(notes))


def _ranked(
    metrics: Mapping[str, Any],
    metric: str,
    values: Mapping[str, float],
    level: float | None,
    floor_name: str,
) -> tuple[list[str], list[str]]:
    """Return the entries, the best one first, and what is better."""
    better = _better(metrics, metric)
    if better in ("lower", "higher"):
        order = sorted(values, key=values.__getitem__, reverse=better == "higher")
        return order, [f"{better} is better"]
    if better == "zero":
        return sorted(values, key=lambda name: abs(values[name])), ["best is 0"]
    if level is None:
        return list(values), []
    order = sorted(values, key=lambda name: abs(values[name] - level))
    return order, [f"best is nearest to {floor_name}"]


def _cell(row: Mapping[str, Any], column: str, is_best: bool = False) -> dict[str, Any]:
    """Return the mean with its spread, and the range over the seeds."""
    if column not in row:
        return {"value": "", "range": "", "best": False}
    value, spread = rounded(row[column], row.get(f"{column}_sd")), ""
    if f"{column}_min" in row:
        ends = [rounded(row[f"{column}_{end}"]) for end in ("min", "max")]
        spread = " … ".join(dict.fromkeys(ends))
    if f"{column}_num_finite" in row:
        number = row[f"{column}_num_finite"]
        value, spread = spread, f"in {number} seeds; no number in others"
    return {"value": value, "range": spread, "best": is_best}
