"""The results of a run: outcomes, and the files that hold them."""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from jaxtyping import ArrayLike

from equistein._serialization import load_arrays, save_arrays
from equistein.runs._folder import RunFolder, UserError

FLOOR = "floor"
"""The entry that holds the floor: what exact samples, or fresh data, would score."""

WARNING = "warning"
"""The kind of an event that holds a warning."""

_KIND = "finished part"
_FIELDS = ("metrics", "history", "arrays")  # of an outcome, by name


@dataclasses.dataclass(frozen=True)
class Metric:
    """What a number is, as reports show it.

    Attributes:
        label: A phrase, such as "distance of energies (Wasserstein-2)".
        better: Whether a `lower` or a `higher` value is better, or one near `zero`;
            empty where it depends.
        unit: Its unit, such as "nats".
    """

    label: str
    better: Literal["lower", "higher", "zero", ""] = ""
    unit: str = ""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Outcome:
    """The results of one sampler or model of a run.

    Attributes:
        metrics: For each metric its values, one a seed.
        samples: The samples of all seeds together, `(n, *shape)`.
        history: For each quantity its values, `(seed, record)`.
        arrays: Further arrays that the figures need.
        events: What happened, such as roll-backs; each joins the history.
    """

    metrics: dict[str, np.ndarray]
    samples: np.ndarray
    history: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)
    arrays: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)
    events: list[dict[str, Any]] = dataclasses.field(default_factory=list)


def seed_outcome(
    metrics: Mapping[str, Any],
    samples: ArrayLike,
    *,
    history: Mapping[str, Any] | None = None,
    arrays: Mapping[str, Any] | None = None,
    stacked: Mapping[str, Any] | None = None,
    events: Sequence[dict] = (),
) -> Outcome:
    """Return the outcome of one seed.

    A column of the history is `step`, or `epoch`, which is stored as `step`. Over the
    seeds, `arrays` will be concatenated, and `stacked` ones stacked.
    """
    columns = {k: np.asarray(values)[None] for k, values in (history or {}).items()}
    if "step" not in columns and "epoch" in columns:
        columns["step"] = columns.pop("epoch")
    extra = {k: np.asarray(values) for k, values in (arrays or {}).items()}
    extra |= {k: np.asarray(values)[None] for k, values in (stacked or {}).items()}
    return Outcome(
        metrics={name: np.array([float(value)]) for name, value in metrics.items()},
        samples=np.asarray(samples), history=columns, arrays=extra, events=list(events),
    )  # fmt: skip


def save_part(folder: RunFolder, name: str, outcome: Outcome) -> None:
    """Save a finished part, so that a resumed run need not repeat it."""
    arrays = {"samples": outcome.samples}
    for field in _FIELDS:
        arrays |= {f"{field}:{k}": v for k, v in getattr(outcome, field).items()}
    header = {"settings_sha256": folder.fingerprint(), "events": outcome.events}
    path = folder.path / "checkpoint" / f"{name}.npz"
    path.parent.mkdir(exist_ok=True)
    save_arrays(path, _KIND, header, arrays)


def load_part(folder: RunFolder, name: str) -> Outcome | None:
    """Return a part that was finished earlier, with the same settings, or None."""
    path = folder.path / "checkpoint" / f"{name}.npz"
    if not path.is_file():
        return None
    fields: dict[str, Any] = {field: {} for field in _FIELDS}
    try:
        header, arrays = load_arrays(path, _KIND, "delete it and resume")
        samples, events = arrays.pop("samples"), header["events"]
        same = header["settings_sha256"] == folder.fingerprint()
        for key, value in arrays.items():
            field, _, rest = key.partition(":")
            fields[field][rest] = value
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(str(error)) from None
    if not same:
        raise UserError(
            f"{path} was made with other settings than config.json has now: put them "
            "back, or delete the file and resume."
        )
    return Outcome(samples=samples, events=events, **fields)


def write_results(
    folder: RunFolder,
    outcomes: Mapping[str, Outcome],
    seeds: Sequence[int],
    about: Mapping[str, Metric],
) -> None:
    """Write metrics.json, per_seed.json, history.jsonl and samples.npz."""
    rows = {name: summarize(outcome.metrics) for name, outcome in outcomes.items()}
    floor = rows.pop(FLOOR, {})
    entries = {name: outcomes[name] for name in rows}
    events = [(name, event) for name, each in entries.items() for event in each.events]
    warnings = [(name, str(event["text"])) for name, event in events if "text" in event]
    metrics = {
        "entries": rows,
        "floor": floor,
        "num_samples": {name: len(each.samples) for name, each in entries.items()},
        "seeds": list(seeds),
        "about": {name: dataclasses.asdict(metric) for name, metric in about.items()},
        "warnings": list(dict.fromkeys(warnings)),
    }
    folder.write_json("metrics.json", metrics)
    values = {
        name: {k: [_json_number(v) for v in row] for k, row in outcome.metrics.items()}
        for name, outcome in outcomes.items()
    }
    folder.write_json("per_seed.json", values)
    write_history(folder, entries)
    samples = {name: np.asarray(each.samples) for name, each in entries.items()}
    save_arrays(folder.path / "samples.npz", "samples of a run", {}, samples)


def write_history(folder: RunFolder, outcomes: Mapping[str, Outcome]) -> None:
    """Write history.jsonl: an object for each recorded step and for each event.

    NaN is left out, and an infinite value is null.
    """
    lines: list[dict[str, Any]] = []
    for name, outcome in outcomes.items():
        columns = outcome.history
        for seed, i in np.ndindex(columns["step"].shape) if columns else ():
            row = {key: column[seed, i].item() for key, column in columns.items()}
            lines.append({"name": name, "seed_index": seed} | row)
        lines += [{"name": name} | event for event in outcome.events]
    finite = lambda v: _json_number(v) if isinstance(v, float) else v
    lines = [{k: finite(v) for k, v in line.items() if v == v} for line in lines]
    text = "".join(json.dumps(line, allow_nan=False) + "\n" for line in lines)
    folder.write("history.jsonl", text)


def write_figures(folder: RunFolder, figures: Mapping[str, Any]) -> None:
    """Write each matplotlib figure as .png and .svg, and each `Page` as .html."""
    from equistein.plotting import figure_file, Page  # loads matplotlib

    for name, figure in figures.items():
        if isinstance(figure, Page):
            folder.write(f"figures/{name}.html", figure.html)
            continue
        for suffix in ("png", "svg"):
            folder.write(f"figures/{name}.{suffix}", figure_file(figure, suffix))


def summarize(metrics: Mapping[str, np.ndarray]) -> dict[str, float | None]:
    """Return each metric's mean over seeds, and with several seeds its spread.

    What is not finite is None; where only some seeds are finite, the spread is theirs,
    and `_num_finite` their number.
    """
    summary: dict[str, float | None] = {}
    for name, values in metrics.items():
        summary[name] = _json_number(np.mean(values))
        if np.size(values) > 1:
            finite = values[np.isfinite(values)]
            if 0 < len(finite) < len(values):
                summary[f"{name}_num_finite"] = len(finite)
            spread = np.std(finite, ddof=1) if len(finite) > 1 else np.nan
            summary[f"{name}_sd"] = _json_number(spread)
            summary[f"{name}_min"] = _json_number(np.min(finite, initial=np.inf))
            summary[f"{name}_max"] = _json_number(np.max(finite, initial=-np.inf))
    return summary


def _json_number(value: Any) -> float | None:
    return float(value) if np.isfinite(value) else None
