"""The few numbers that a report begins with."""

import dataclasses
import math
import types
from collections.abc import Mapping, Sequence
from typing import Any

from equistein.runs._metric_words import in_words

_MOST = 4  # headlines, where nobody chose them
_HIGHER = (
    "accuracy",
    "auroc",
    "validity",
    "stability",
    "held_out_log_likelihood",
    "test_log_density",
    "within_tolerance",
    "precision",
    "recall",
)
_LOWER = (
    "distance",
    "w1",
    "w2",
    "calibration_error",
    "held_out_force_error",
    "held_out_energy_error",
    "tvd",
    "ksd",
    "divergence",
    "variation",
    "bits_per_dimension",
    "weight_error",
    "copy_error",
    "error_of_a_share",
    "gap",
    "loss",
    "expanded",
    "evaluations_to",
)
_SIGNED = ("log_z_error",)  # best at zero
_NEITHER = ("_of_normals", "_of_zero", "_floor", "_labels")
RESERVED = ("seeds", "num_samples", "floor")
SPREAD = ("_sd", "_min", "_max", "_num_finite")
"""What a metric's name ends with where it tells the spread over seeds."""


@dataclasses.dataclass(frozen=True)
class Headline:
    """A number with what it is better or worse than.

    Attributes:
        metric: What is measured, in words.
        value: The number of the best entry, rounded by its spread.
        entry: Which one that is, as figures call it.
        beside: What others have, in a sentence.
    """

    metric: str
    value: str
    entry: str
    beside: str


def headlines(
    metrics: Mapping[str, Any],
    wanted: Sequence[str],
    floor_name: str,
    labels: Mapping[str, str] = types.MappingProxyType({}),
) -> list[Headline]:
    """Return what a report says first, from its metrics.json.

    Args:
        metrics: The numbers of each entry, `seeds`, `num_samples` and `floor`.
        wanted: The metrics to choose; if none, the first that are known to be better
            the lower or the higher they are, those with a floor before.
        floor_name: What the floor is of.
        labels: What figures call entries, where that is not their name.
    """
    rows = {
        name: row for name, row in metrics.items()
        if name not in RESERVED and isinstance(row, dict)
    }  # fmt: skip
    floor = metrics.get("floor") or {}
    names = dict.fromkeys(name for row in rows.values() for name in row)
    chosen = [name for name in wanted if name in names]
    if not chosen:
        known = [name for name in names if lower_is_better(name) is not None]
        chosen = sorted(known, key=lambda name: name not in floor)[:_MOST]
    found = (
        _headline(name, rows, floor, metrics, floor_name, labels) for name in chosen
    )
    return [each for each in found if each is not None]


def lower_is_better(metric: str) -> bool | None:
    """Return whether less of a metric is better, None where it cannot be said."""
    if metric.endswith((*_NEITHER, *SPREAD)):
        return None
    if any(word in metric for word in _HIGHER):
        return False
    return True if any(word in metric for word in _LOWER) else None


def rounded(value: Any, spread: Any = None) -> str:
    """Return a number to two digits of its spread, or three digits without one."""
    if not isinstance(value, int | float) or not math.isfinite(value):
        return "–"
    if not isinstance(spread, int | float) or not 0 < spread < math.inf:
        return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"
    places = min(max(0, 1 - math.floor(math.log10(spread))), 6)
    return f"{value:.{places}f} ± {spread:.{places}f}"


def _headline(
    metric: str,
    rows: Mapping[str, Mapping[str, Any]],
    floor: Mapping[str, Any],
    metrics: Mapping[str, Any],
    floor_name: str,
    labels: Mapping[str, str],
) -> Headline | None:
    values = {
        name: row[metric] for name, row in rows.items()
        if isinstance(row.get(metric), int | float) and math.isfinite(row[metric])
    }  # fmt: skip
    if not values:
        return None
    level = floor[metric] if isinstance(floor.get(metric), int | float) else None
    order, told = _ranked(metric, values, level, floor_name)
    # Below the floor nothing is better: it is as good as what the floor is of.
    below = level is not None and lower_is_better(metric)
    at_floor = [name for name in order if below and values[name] <= level]
    first = at_floor or order[:1]
    best, others = order[0], [name for name in order if name not in first]
    if others:
        shown = dict.fromkeys((others[0], others[-1]))
        parts = [f"{labels.get(n, n)} {rounded(values[n])}" for n in shown]
        told.append(f"beside it {' and '.join(parts)}")
    if level is not None:
        told.append(f"{floor_name} {rounded(level, floor.get(f'{metric}_sd'))}")
    num = metrics.get("num_samples", {})
    count = num.get(best) if isinstance(num, dict) else None
    seeds = len(metrics.get("seeds") or ())
    if count:
        of = f" in all, {seeds} seeds" if seeds > 1 else ""
        told.append(f"{count} samples{of}")
    value = rounded(values[best], rows[best].get(f"{metric}_sd"))
    entry = ", ".join(labels.get(name, name) for name in first)
    if len(at_floor) > 1:
        told.insert(0, "all as good as the floor")
        value = " … ".join(dict.fromkeys(rounded(values[n]) for n in (best, first[-1])))
    return Headline(in_words(metric), value, entry, "; ".join(told))


def _ranked(
    metric: str, values: Mapping[str, float], level: float | None, floor_name: str
) -> tuple[list[str], list[str]]:
    """Return the entries, the best one first, and what is better.

    Where neither less nor more is better, the nearest to the floor is; and in the
    order that entries have where there is none.
    """
    lower = lower_is_better(metric)
    if lower is not None:
        order = sorted(values, key=values.__getitem__, reverse=not lower)
        return order, ["lower is better" if lower else "higher is better"]
    if metric in _SIGNED:
        return sorted(values, key=lambda name: abs(values[name])), ["best is 0"]
    if level is None:
        return list(values), []
    order = sorted(values, key=lambda name: abs(values[name] - level))
    return order, [f"best is nearest to {floor_name}"]
