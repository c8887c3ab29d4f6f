"""The table of numbers of a report."""

import math
from collections.abc import Mapping
from typing import Any

from equistein.runs._headlines import lower_is_better, RESERVED, rounded

_EXTRA = ("_sd", "_min", "_max")


def table_columns(metrics: Mapping[str, Any]) -> list[str]:
    """Return the metrics of the table, without the spread of other metrics."""
    rows = [row for name, row in metrics.items() if name not in RESERVED]
    rows.append(metrics.get("floor", {}))
    names = dict.fromkeys(name for row in rows for name in row)
    spreads = {f"{name}{extra}" for name in names for extra in _EXTRA}
    return [name for name in names if name not in spreads]


def table_rows(
    metrics: Mapping[str, Any],
    columns: list[str],
    floor: str,
    labels: Mapping[str, str],
) -> list[dict[str, Any]]:
    """Return the rows of the table, the floor last."""
    entries = {name: row for name, row in metrics.items() if name not in RESERVED}
    best = {column: _best(entries, column) for column in columns}
    counts, made = metrics.get("num_samples", {}), []
    for name, row in [*entries.items(), ("floor", metrics.get("floor", {}))]:
        is_floor = name == "floor"
        if is_floor and not row:
            continue
        cells = [
            {
                "value": rounded(row[c], row.get(f"{c}_sd")) if c in row else "",
                "range": _range(row, c),
                "best": not is_floor and best[c] == name,
            }
            for c in columns
        ]
        label = f"floor: {floor}" if is_floor else labels.get(name, name)
        made.append(
            {
                "label": label,
                "name": "" if is_floor or label == name else name,
                "count": counts.get(name, ""),
                "cells": cells,
                "is_floor": is_floor,
            }
        )
    return made


def told_of(metrics: Mapping[str, Any], floor_note: str) -> str:
    """Return what numbers in the table are."""
    seeds = metrics.get("seeds", [])
    if len(seeds) < 2:
        return floor_note
    return (
        f"Mean over {len(seeds)} seeds, plus or minus the standard deviation, with the "
        f"smallest and the largest below. {floor_note}"
    )


def _best(entries: Mapping[str, Any], column: str) -> str | None:
    """Return the entry with the best value of a metric, where there are several."""
    lower = lower_is_better(column)
    values = {
        name: row[column] for name, row in entries.items()
        if isinstance(row.get(column), int | float) and math.isfinite(row[column])
    }  # fmt: skip
    if lower is None or len(values) < 2:
        return None
    return (min if lower else max)(values, key=values.__getitem__)


def _range(row: Mapping[str, Any], column: str) -> str:
    """Return the smallest and the largest of several seeds."""
    if not all(f"{column}{extra}" in row for extra in _EXTRA):
        return ""
    return f"{rounded(row[f'{column}_min'])} … {rounded(row[f'{column}_max'])}"
