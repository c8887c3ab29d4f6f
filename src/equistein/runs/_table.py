"""The table of numbers of a report."""

import math
from collections.abc import Mapping
from typing import Any

from equistein.runs._headlines import lower_is_better, RESERVED, rounded, SPREAD


def table_columns(metrics: Mapping[str, Any]) -> list[str]:
    """Return the metrics of the table, without the spread of other metrics."""
    rows = [row for name, row in metrics.items() if name not in RESERVED]
    rows.append(metrics.get("floor", {}))
    names = dict.fromkeys(name for row in rows for name in row)
    spreads = {f"{name}{extra}" for name in names for extra in SPREAD}
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
                "value": _value(row, c),
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


def _value(row: Mapping[str, Any], column: str) -> str:
    """Return the mean and its spread, or the range where some seeds have no number."""
    if column not in row:
        return ""
    if f"{column}_num_finite" in row:
        return _ends(row, column)
    return rounded(row[column], row.get(f"{column}_sd"))


def _range(row: Mapping[str, Any], column: str) -> str:
    """Return the smallest and the largest of several seeds, or how many there are."""
    if f"{column}_min" not in row:
        return ""
    if f"{column}_num_finite" in row:
        return f"in {row[f'{column}_num_finite']} seeds; no number in others"
    return _ends(row, column)


def _ends(row: Mapping[str, Any], column: str) -> str:
    ends = [rounded(row[f"{column}_{end}"]) for end in ("min", "max")]
    return " … ".join(dict.fromkeys(ends))
