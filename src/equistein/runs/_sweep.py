"""Many runs that differ in some settings: their settings, and their results as one."""

import csv
import dataclasses
import io
import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from equistein._errors import UserError
from equistein.runs._folder import RunFolder
from equistein.runs._outcome import FLOOR
from equistein.runs._results import summarize, write_figures

SEEDS = "seed"
_MOST = 100_000  # runs of a sweep
_PANELS = 6  # figures, one a metric


@dataclasses.dataclass(frozen=True)
class Member:
    """One run of a sweep.

    Attributes:
        values: The value of each swept field, as it is written on the command line.
    """

    values: Mapping[str, str]

    @property
    def name(self) -> str:
        """What its folder is called, such as `seed=0 bandwidth=.1`."""
        return " ".join(f"{field}={value}" for field, value in self.values.items())

    @property
    def setting(self) -> str:
        """What it differs in from others but for the seed."""
        others = {f: v for f, v in self.values.items() if f != SEEDS}
        return " ".join(f"{field}={value}" for field, value in others.items())


def members(over: Sequence[str]) -> list[Member]:
    """Return the runs of all combinations of what fields are swept over.

    Args:
        over: For each field its values, `field=1,2,3` or `field=0..19`.

    Raises:
        UserError: If one is not written so, or there are too many.
    """
    swept: dict[str, list[str]] = {}
    for text in over:
        field, _, written = text.partition("=")
        field = field.strip().lstrip("-").replace("-", "_")
        values = [v for part in written.split(",") for v in _values(part.strip())]
        if not field or not all(values) or len(set(values)) < len(values):
            raise UserError(
                "--over needs a field and its values, all different, such as "
                f"bandwidth=.1,.2 or seed=0..19, but got {text!r}."
            )
        if field in swept:
            raise UserError(f"--over names {field} twice: give all its values at once.")
        swept[field] = values
    if not swept:
        raise UserError("A sweep needs what it is over, such as --over seed=0..19.")
    _check_number(math.prod(map(len, swept.values())))
    combined = itertools.product(*swept.values())
    return [Member(dict(zip(swept, values, strict=True))) for values in combined]


def _check_number(number: int) -> None:
    if number > _MOST:
        raise UserError(
            f"A sweep has at most {_MOST} runs, a folder each, but this has {number}: "
            "make several sweeps, of some of the values each."
        )


def _values(part: str) -> list[str]:
    first, dots, last = part.partition("..")
    if not dots:
        return [part]
    try:
        begin, end = int(first), int(last)
    except ValueError:
        return [part]
    if end < begin:
        return [""]  # no values
    _check_number(end - begin + 1)
    return [str(value) for value in range(begin, end + 1)]


def write_sweep_results(
    folder: RunFolder, results: Mapping[str, tuple[Member, Mapping[str, Any]]]
) -> None:
    """Write metrics.json, table.csv and figures of all runs that are finished.

    Runs that differ in the seed alone are one row of metrics.json, with the spread.

    Args:
        folder: The sweep's.
        results: For each finished run its per_seed.json.
    """
    pooled: dict[str, dict[str, list]] = {}
    for member, models in results.values():
        for model, metrics in models.items():
            name = " ".join(filter(None, (model, member.setting)))
            for metric, values in metrics.items():
                kept = pooled.setdefault(name, {}).setdefault(metric, [])
                kept += [math.nan if value is None else value for value in values]
    rows = {
        name: summarize({metric: np.array(v) for metric, v in metrics.items()})
        for name, metrics in pooled.items()
    }
    floors = [name for name in rows if name.split(" ")[0] == FLOOR]
    floor = rows[floors[0]] if len(floors) == 1 else {}
    shown = rows if not floor else {n: r for n, r in rows.items() if n not in floors}
    seeds = sorted(
        {int(m.values[SEEDS]) for m, _ in results.values() if SEEDS in m.values}
    )
    folder.write_json("metrics.json", shown | {"seeds": seeds, "floor": floor})
    folder.write("table.csv", _table(results))
    write_figures(folder, _figures(results))


def _table(results: Mapping[str, tuple[Member, Mapping[str, Any]]]) -> str:
    """Return one line for each run, model and seed of it."""
    fields: dict[str, None] = {}
    metrics: dict[str, None] = {}
    lines: list[dict[str, Any]] = []
    for name, (member, models) in results.items():
        fields |= dict.fromkeys(member.values)
        for model, found in models.items():
            metrics |= dict.fromkeys(found)
            for index in range(max(map(len, found.values()), default=0)):
                numbers = {k: v[index] for k, v in found.items() if index < len(v)}
                about = {"run": name, "model": model, "seed_index": index}
                lines.append(about | dict(member.values) | numbers)
    written = io.StringIO()
    columns = ["run", *fields, "model", "seed_index", *metrics]
    writer = csv.DictWriter(written, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return written.getvalue()


def _figures(
    results: Mapping[str, tuple[Member, Mapping[str, Any]]],
) -> dict[str, Any]:
    """Return curves of the first metrics over a field of numbers, if there is one."""
    swept = {field for member, _ in results.values() for field in member.values}
    fields = sorted(swept - {SEEDS})
    try:
        (field,) = fields
        at = {name: float(m.values[field]) for name, (m, _) in results.items()}
    except ValueError:  # none, several, or words
        return {}
    places = sorted(set(at.values()))
    if len(places) < 2:
        return {}
    from equistein.plotting import curves  # loads matplotlib

    metrics: dict[str, dict[str, dict[float, list]]] = {}
    for name, (_, models) in results.items():
        for model, found in models.items():
            for metric, values in found.items():
                seen = metrics.setdefault(metric, {}).setdefault(model, {})
                seen.setdefault(at[name], []).extend(v for v in values if v is not None)
    drawn = {}
    for metric, models in list(metrics.items())[:_PANELS]:
        series = {}
        for model, seen in models.items():
            here = [place for place in places if seen.get(place)]
            num = min((len(seen[place]) for place in here), default=0)
            if num:
                values = np.array([seen[place][:num] for place in here]).T
                series[model] = np.array(here), values
        if series:
            label = metric.replace("_", " ")
            drawn[metric] = curves(series, label, x_label=field.replace("_", " "))
    return drawn
