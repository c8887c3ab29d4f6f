"""The numbers of a report: its headlines and the cells of its table."""

import math
from collections.abc import Mapping
from typing import Any

_MOST = 4  # headlines, by default
_SPREAD = ("_sd", "_min", "_max", "_num_finite")  # suffixes of the spread over seeds
_BETTER = {
    "lower": "lower is better",
    "higher": "higher is better",
    "zero": "best is 0",
}

Metrics = Mapping[str, Any]
"""The content of metrics.json."""


def rounded(value: Any, spread: Any = None) -> str:
    """Return a number to two digits of its spread, or three digits without one."""
    if not isinstance(value, int | float) or not math.isfinite(value):
        return "–"
    if not isinstance(spread, int | float) or not 0 < spread < math.inf:
        return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"
    places = min(max(0, 1 - math.floor(math.log10(spread))), 6)
    return f"{value:.{places}f} ± {spread:.{places}f}"


def columns_of(metrics: Metrics) -> list[str]:
    """Return the metrics of the table, without the spread of other metrics."""
    rows = [*metrics["entries"].values(), metrics["floor"]]
    names = dict.fromkeys(name for row in rows for name in row)
    spreads = {f"{name}{suffix}" for name in names for suffix in _SPREAD}
    return [name for name in names if name not in spreads]


def about_of(metrics: Metrics, name: str) -> dict[str, str]:
    """Return the `label` of a metric, with its unit, and which values are `better`."""
    about = metrics["about"].get(name)
    if about is None:
        return {"label": name.replace("_", " "), "better": ""}
    unit = f" ({about['unit']})" if about["unit"] else ""
    return {"label": f"{about['label']}{unit}", "better": about["better"]}


def ranked(metrics: Metrics, name: str) -> dict[str, float]:
    """Return the finite values of a metric by entry, the best one first."""
    values = {
        entry: row[name]
        for entry, row in metrics["entries"].items()
        if isinstance(row.get(name), int | float) and math.isfinite(row[name])
    }
    better, floor = about_of(metrics, name)["better"], metrics["floor"].get(name)
    loss = {
        "lower": lambda value: value,
        "higher": lambda value: -value,
        "zero": abs,
        "": lambda value: 0 if floor is None else abs(value - floor),
    }[better]
    return dict(sorted(values.items(), key=lambda item: loss(item[1])))


def headlines(metrics: Metrics, text: Any) -> list[dict[str, str]]:
    """Return the headlines of a report: numbers with what they are better than.

    Without a choice they are the first metrics that have a direction, those with a
    floor before others.
    """
    columns = columns_of(metrics)
    chosen = [name for name in text.headlines if name in columns]
    if not chosen:
        directed = [name for name in columns if about_of(metrics, name)["better"]]
        chosen = sorted(directed, key=lambda n: n not in metrics["floor"])[:_MOST]
    return [_headline(metrics, text, n) for n in chosen if ranked(metrics, n)]


def _headline(metrics: Metrics, text: Any, name: str) -> dict[str, str]:
    values, level = ranked(metrics, name), metrics["floor"].get(name)
    label, better = about_of(metrics, name).values()
    best, *others = values
    nearest = "" if level is None else f"best is nearest to {text.floor}"
    first, notes = [best], [_BETTER.get(better, nearest)]
    if level is not None and better == "lower":
        # Below the floor nothing is better: it is as good as the floor.
        equal = [entry for entry in values if values[entry] <= level]
        if len(equal) > 1:
            first, notes = equal, ["all as good as the floor", *notes]
    others = [entry for entry in others if entry not in first]
    named = lambda entry: text.labels.get(entry, entry)
    if others:
        ends = dict.fromkeys((others[0], others[-1]))
        texts = [f"{named(entry)} {rounded(values[entry])}" for entry in ends]
        notes.append(f"others: {' and '.join(texts)}")
    if level is not None:
        notes.append(
            f"{text.floor} {rounded(level, metrics['floor'].get(f'{name}_sd'))}"
        )
    if count := metrics.get("num_samples", {}).get(best):
        notes.append(f"{count} samples")
    return {
        "metric": label,
        "value": rounded(values[best], metrics["entries"][best].get(f"{name}_sd")),
        "entry": ", ".join(map(named, first)),
        "comparison": "; ".join(filter(None, notes)),
    }


def cell(row: Mapping[str, Any], name: str) -> tuple[str, str]:
    """Return the mean of a metric with its spread, and the range over the seeds."""
    value, spread = "", ""
    if name in row:
        value = rounded(row[name], row.get(f"{name}_sd"))
    if f"{name}_min" in row:
        ends = [rounded(row[f"{name}_{end}"]) for end in ("min", "max")]
        spread = " … ".join(dict.fromkeys(ends))
    if f"{name}_num_finite" in row:
        number = row[f"{name}_num_finite"]
        return spread, f"in {number} seeds; no number in others"
    return value, spread
