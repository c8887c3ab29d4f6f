"""The results of a run as files: stages, numbers, history, samples, figures."""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from equistein._archive import checksum_of
from equistein._errors import UserError
from equistein._limits import check_bytes, JSON_GROWTH
from equistein.runs._folder import RunFolder
from equistein.runs._outcome import check_outcome, FLOOR, Outcome

_SETTINGS, _CHECKSUM = "settings_sha256", "sha256"


def save_outcome(folder: RunFolder, name: str, outcome: Outcome) -> None:
    """Keep a finished stage, so that a resumed run need not repeat it."""
    parts = arrays_of(outcome) | {_SETTINGS: np.array(folder.fingerprint())}
    parts |= {_CHECKSUM: np.array(checksum_of(parts))}
    folder.write_arrays(f"checkpoint/{name}.npz", parts)


def load_outcome(folder: RunFolder, name: str) -> Outcome | None:
    """Return a stage finished earlier, or None.

    Raises:
        UserError: If its file is damaged, or belongs to other settings.
    """
    path = folder.path / "checkpoint" / f"{name}.npz"
    if not path.is_file():
        return None
    parts = folder.read_arrays(f"checkpoint/{name}.npz")
    told = parts.pop(_CHECKSUM, None)  # None was before there were any
    if told is not None and str(told) != checksum_of(parts):
        raise UserError(
            f"{path} was changed or damaged after it was written: delete it and resume."
        )
    made = parts.pop(_SETTINGS, None)  # None was before there were any
    if made is not None and str(made) != folder.fingerprint():
        raise UserError(
            f"{path} was made with other settings than config.json has now: put them "
            "back, or delete the file and resume."
        )
    try:
        outcome = outcome_of(parts)
        check_outcome(outcome)
        return outcome
    except (KeyError, RecursionError, TypeError, ValueError) as error:
        raise UserError(
            f"{path} is no finished part of a run ({error}): delete it and resume."
        ) from None


def arrays_of(outcome: Outcome) -> dict[str, np.ndarray]:
    """Return all that an outcome is as arrays, by name."""
    parts = {"samples": outcome.samples}
    for field in ("metrics", "history", "arrays"):
        for key, value in getattr(outcome, field).items():
            parts[f"{field}:{key}"] = value
    return parts | {"events": np.array(json.dumps(outcome.events))}


def outcome_of(arrays: Mapping[str, np.ndarray]) -> Outcome:
    """Return the outcome that arrays tell of."""
    parts = dict(arrays)
    told = str(parts.pop("events", "[]"))
    check_bytes("What happened in a part", JSON_GROWTH * len(told))
    events = json.loads(told)
    fields: dict[str, Any] = {"metrics": {}, "history": {}, "arrays": {}}
    for key, value in parts.items():
        field, _, rest = key.partition(":")
        if rest:
            fields[field][rest] = value
    return Outcome(samples=parts["samples"], events=events, **fields)


def write_results(
    folder: RunFolder, outcomes: Mapping[str, Outcome], seeds: list[int]
) -> None:
    """Write metrics.json, per_seed.json, history.jsonl and samples.npz."""
    shown = {name: out for name, out in outcomes.items() if name != FLOOR}
    metrics: dict[str, Any] = {
        name: summarize(outcome.metrics) for name, outcome in shown.items()
    }
    metrics["seeds"] = seeds
    metrics["num_samples"] = {name: len(out.samples) for name, out in shown.items()}
    floor = outcomes.get(FLOOR)
    metrics["floor"] = summarize(floor.metrics) if floor else {}
    folder.write_json("metrics.json", metrics)
    folder.write_json(
        "per_seed.json",
        {
            name: {
                key: [_json_number(value) for value in values]
                for key, values in outcome.metrics.items()
            }
            for name, outcome in outcomes.items()
        },
    )
    write_history(folder, shown)
    samples = {name: outcome.samples for name, outcome in shown.items()}
    folder.write_arrays("samples.npz", samples)


def write_history(folder: RunFolder, outcomes: Mapping[str, Outcome]) -> None:
    """Write history.jsonl: an object for each recorded step and for each event.

    A value that is NaN, as one not looked at in this step, is left out; an infinite one
    is null.
    """
    lines = [line for name, out in outcomes.items() for line in _lines(name, out)]
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

    What is not finite is None, which JSON has a word for; where some seeds are, the
    spread is theirs, and there is the number of them.
    """
    summary = {}
    for name, values in metrics.items():
        summary[name] = _json_number(np.mean(values))
        if np.size(values) > 1:
            known = values[np.isfinite(values)]
            if 0 < len(known) < len(values):  # some never reached it
                summary[f"{name}_num_finite"] = len(known)
            spread = np.std(known, ddof=1) if len(known) > 1 else np.nan
            summary[f"{name}_sd"] = _json_number(spread)
            summary[f"{name}_min"] = _json_number(np.min(known, initial=np.inf))
            summary[f"{name}_max"] = _json_number(np.max(known, initial=-np.inf))
    return summary


def _json_number(value: Any) -> float | None:
    return float(value) if np.isfinite(value) else None


def _lines(name: str, outcome: Outcome) -> list[dict[str, Any]]:
    lines = []
    if outcome.history:
        num_seeds, num_steps = outcome.history["step"].shape
        lines = [
            {"name": name, "seed_index": seed}
            | {key: column[seed, i].item() for key, column in outcome.history.items()}
            for seed in range(num_seeds)
            for i in range(num_steps)
        ]
    lines += [{"name": name} | event for event in outcome.events]
    return [{key: _finite(v) for key, v in line.items() if v == v} for line in lines]


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not np.isfinite(value) else value
