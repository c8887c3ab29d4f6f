"""The numbers of a report: its headlines and its table."""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

_MOST = 4  # headlines, by default
_SPREAD = ("_sd", "_min", "_max", "_num_finite")  # suffixes of the spread over seeds
_BETTER = {
    "lower": "lower is better",
    "higher": "higher is better",
    "zero": "best is 0",
}


def rounded(value: Any, spread: Any = None) -> str:
    """Return a number to two digits of its spread, or three digits without one."""
    if not isinstance(value, int | float) or not math.isfinite(value):
        return "–"
    if not isinstance(spread, int | float) or not 0 < spread < math.inf:
        return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"
    places = min(max(0, 1 - math.floor(math.log10(spread))), 6)
    return f"{value:.{places}f} ± {spread:.{places}f}"


@dataclasses.dataclass(frozen=True)
class Tables:
    """The numbers of metrics.json as a report shows them.

    Attributes:
        metrics: The content of the file.
        floor_name: What the floor is of.
        labels: What figures call entries, where that is not their name.
    """

    metrics: Mapping[str, Any]
    floor_name: str
    labels: Mapping[str, str]

    @property
    def floor(self) -> Mapping[str, Any]:
        """The numbers of the floor; empty where there is none."""
        return self.metrics.get("floor") or {}

    @property
    def columns(self) -> list[str]:
        """The metrics, without the spread of other metrics."""
        rows = [*self.metrics["entries"].values(), self.floor]
        names = dict.fromkeys(name for row in rows for name in row)
        spreads = {f"{name}{suffix}" for name in names for suffix in _SPREAD}
        return [name for name in names if name not in spreads]

    def about(self, metric: str) -> tuple[str, str]:
        """Return what a metric is, with its unit, and which values are better."""
        about = (self.metrics.get("about") or {}).get(metric)
        if not about:
            return metric.replace("_", " "), ""
        unit = f" ({about['unit']})" if about["unit"] else ""
        return f"{about['label']}{unit}", about["better"]

    def ranked(self, metric: str) -> dict[str, float]:
        """Return the finite values of a metric by entry, the best one first."""
        values = {
            entry: row[metric]
            for entry, row in self.metrics["entries"].items()
            if isinstance(row.get(metric), int | float) and math.isfinite(row[metric])
        }
        _, better = self.about(metric)
        level = self.floor.get(metric)
        if better in ("lower", "higher"):
            loss = lambda entry: values[entry] * (1 if better == "lower" else -1)
        elif better == "zero" or level is not None:
            loss = lambda entry: abs(values[entry] - (0 if better else level))
        else:
            return values
        return {entry: values[entry] for entry in sorted(values, key=loss)}

    def headlines(self, wanted: Sequence[str]) -> list[dict[str, str]]:
        """Return the wanted numbers, each with what it is better or worse than.

        If none is wanted, they are the first that have a direction, those with a floor
        before others.
        """
        chosen = [name for name in wanted if name in self.columns]
        if not chosen:
            directed = [name for name in self.columns if self.about(name)[1]]
            chosen = sorted(directed, key=lambda name: name not in self.floor)[:_MOST]
        return [self._headline(name) for name in chosen if self.ranked(name)]

    def _headline(self, metric: str) -> dict[str, str]:
        values, level = self.ranked(metric), self.floor.get(metric)
        label, better = self.about(metric)
        best, *_ = values
        first, notes = [best], [_BETTER[better]] if better else []
        if level is not None:
            if not better:
                notes = [f"best is nearest to {self.floor_name}"]
            # Below the floor nothing is better: it is as good as exact samples.
            equal = [name for name in values if values[name] <= level]
            if better == "lower" and len(equal) > 1:
                first, notes = equal, ["all as good as the floor", *notes]
        others = [name for name in values if name not in first]
        if others:
            ends = dict.fromkeys((others[0], others[-1]))
            texts = [f"{self.labels.get(n, n)} {rounded(values[n])}" for n in ends]
            notes.append(f"others: {' and '.join(texts)}")
        if level is not None:
            floor = rounded(level, self.floor.get(f"{metric}_sd"))
            notes.append(f"{self.floor_name} {floor}")
        if count := self.metrics.get("num_samples", {}).get(best):
            notes.append(f"{count} samples")
        spread = self.metrics["entries"][best].get(f"{metric}_sd")
        return {
            "metric": label,
            "value": rounded(values[best], spread),
            "entry": ", ".join(self.labels.get(name, name) for name in first),
            "comparison": "; ".join(notes),
        }

    def rows(self) -> list[dict[str, Any]]:
        """Return the rows of the table, the floor last."""
        best, counts = {}, self.metrics.get("num_samples", {})
        for column in self.columns:
            ranked = list(self.ranked(column))
            if len(ranked) > 1 and self.about(column)[1] in ("lower", "higher"):
                best[column] = ranked[0]
        rows = [
            {
                "label": self.labels.get(name, name),
                "name": name if name in self.labels else "",
                "count": counts.get(name, ""),
                "cells": [_cell(row, c, best.get(c) == name) for c in self.columns],
            }
            for name, row in self.metrics["entries"].items()
        ]
        if self.floor:
            cells = [_cell(self.floor, column) for column in self.columns]
            label = f"floor: {self.floor_name}"
            rows.append({"label": label, "name": "", "count": "", "cells": cells})
        return rows


def _cell(row: Mapping[str, Any], column: str, best: bool = False) -> dict[str, Any]:
    """Return the mean with its spread, and the range over the seeds."""
    value, spread = "", ""
    if column in row:
        value = rounded(row[column], row.get(f"{column}_sd"))
    if f"{column}_min" in row:
        ends = [rounded(row[f"{column}_{end}"]) for end in ("min", "max")]
        spread = " … ".join(dict.fromkeys(ends))
    if f"{column}_num_finite" in row:
        number = row[f"{column}_num_finite"]
        value, spread = spread, f"in {number} seeds; no number in others"
    return {"value": value, "range": spread, "best": best}
