"""The run folder: everything a run leaves, written atomically."""

import dataclasses
import datetime
import importlib.metadata
import io
import json
import os
import pathlib
import platform
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from equistein.experiments import FLOOR, Outcome
from equistein.plotting import Page


class UserError(Exception):
    """A mistake of the user's: printed without a traceback, exit status 2."""


class RunFolder:
    """A directory that holds one run.

    Args:
        path: The directory.
    """

    def __init__(self, path: pathlib.Path):
        self.path = path

    @classmethod
    def create(cls, path: pathlib.Path) -> "RunFolder":
        """Make a new, empty run folder.

        Raises:
            UserError: If the folder has something in it, or cannot be written.
        """
        try:
            path.mkdir(parents=True, exist_ok=True)
            # What a run killed in the midst of its first file left is no run.
            if any(not file.name.endswith(".part") for file in path.iterdir()):
                raise UserError(
                    f"The output folder {path} is not empty, and nothing in it will be "
                    f"overwritten: choose another --out, or `equistein resume {path}` "
                    "if it is an unfinished run."
                )
            probe = path / ".probe.part"
            probe.touch()
            probe.unlink()
        except (OSError, ValueError) as error:
            raise UserError(
                f"Cannot write to the output folder {path}: {error}. Choose another "
                "--out."
            ) from None
        return cls(path)

    @classmethod
    def pretrained(cls, name: str) -> "RunFolder":
        """Open a fit that comes with the package.

        Raises:
            UserError: If there is none of this name.
        """
        shelf = pathlib.Path(__file__).parents[1] / "pretrained"
        known = sorted(path.parent.name for path in shelf.glob("*/config.json"))
        if name not in known:
            raise UserError(
                f"There is no pretrained model {name!r}, only {', '.join(known)}."
            )
        return cls(shelf / name)

    @classmethod
    def open(cls, path: pathlib.Path) -> "RunFolder":
        """Open a folder that a run made.

        Raises:
            UserError: If it is not one.
        """
        if not (path / "config.json").is_file():
            raise UserError(
                f"{path} is not a run folder: it has no config.json. Give the folder "
                "that `equistein run` or `equistein fit` printed."
            )
        return cls(path)

    def read_json(self, name: str) -> dict:
        """Return the object in a JSON file of the run.

        Raises:
            UserError: If the file is missing or damaged.
        """
        path = self.path / name
        try:
            value = json.loads(path.read_text())
        except (OSError, ValueError) as error:
            raise UserError(f"Cannot read {path}: {error}.") from None
        if not isinstance(value, dict):
            raise UserError(f"{path} should hold a JSON object.")
        return value

    def write_json(self, name: str, value: Any) -> None:
        """Write a JSON file."""
        self.write(name, json.dumps(value, indent=1, allow_nan=True) + "\n")

    def write(self, name: str, content: str | bytes) -> None:
        """Write a file under a temporary name and rename it into place."""
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name}.part")
        data = content.encode() if isinstance(content, str) else content
        temporary.write_bytes(data)
        os.replace(temporary, path)

    def write_arrays(self, name: str, arrays: Mapping[str, np.ndarray]) -> None:
        """Write arrays by name into an .npz file."""
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.stem}.part.npz")
        plain = {key: np.asarray(value) for key, value in arrays.items()}
        np.savez(temporary, allow_pickle=False, **plain)
        os.replace(temporary, path)

    def read_arrays(self, name: str) -> dict[str, np.ndarray]:
        """Return the arrays of an .npz file.

        Raises:
            UserError: If the file is missing or damaged.
        """
        path = self.path / name
        try:
            with open(path, "rb") as file, np.load(file, allow_pickle=False) as stored:
                return dict(stored)
        except Exception as error:  # a damaged file can raise nearly anything
            raise UserError(
                f"Cannot read {path}: {error}. If it is damaged, delete it and resume."
            ) from None

    def save_outcome(self, name: str, outcome: Outcome) -> None:
        """Keep a finished stage, so that a resumed run need not repeat it."""
        parts = {"samples": outcome.samples}
        for field in ("metrics", "history", "arrays"):
            for key, value in getattr(outcome, field).items():
                parts[f"{field}:{key}"] = value
        parts["events"] = np.array(json.dumps(outcome.events))
        self.write_arrays(f"checkpoint/{name}.npz", parts)

    def load_outcome(self, name: str) -> Outcome | None:
        """Return a stage finished earlier, or None."""
        if not (self.path / "checkpoint" / f"{name}.npz").is_file():
            return None
        parts = self.read_arrays(f"checkpoint/{name}.npz")
        if "samples" not in parts:
            raise UserError(f"{self.path / 'checkpoint' / name}.npz holds no samples.")
        events = json.loads(str(parts.pop("events", "[]")))
        fields: dict[str, Any] = {"metrics": {}, "history": {}, "arrays": {}}
        for key, value in parts.items():
            field, _, rest = key.partition(":")
            if rest:
                fields[field][rest] = value
        return Outcome(samples=parts["samples"], events=events, **fields)

    def write_results(self, outcomes: Mapping[str, Outcome], seeds: list[int]) -> None:
        """Write metrics.json, per_seed.json, history.jsonl and samples.npz."""
        shown = {name: out for name, out in outcomes.items() if name != FLOOR}
        metrics: dict[str, Any] = {
            name: summarize(outcome.metrics) for name, outcome in shown.items()
        }
        metrics["seeds"] = seeds
        metrics["num_samples"] = {
            name: len(outcome.samples) for name, outcome in shown.items()
        }
        floor = outcomes.get(FLOOR)
        metrics["floor"] = summarize(floor.metrics) if floor else {}
        self.write_json("metrics.json", metrics)
        self.write_json(
            "per_seed.json",
            {
                name: {
                    key: [_json_number(value) for value in values]
                    for key, values in outcome.metrics.items()
                }
                for name, outcome in outcomes.items()
            },
        )
        self._write_lines(
            [line for name, out in shown.items() for line in _lines(name, out)]
        )
        self.write_arrays(
            "samples.npz", {name: outcome.samples for name, outcome in shown.items()}
        )

    def write_history(
        self, history: Mapping[str, np.ndarray], events: list[dict[str, Any]]
    ) -> None:
        """Write history.jsonl alone, of a fit that came to no results."""
        done = np.isfinite(history["loss"])
        rows = {"step": history["epoch"]} | dict(history)
        rows = {name: values[done][None] for name, values in rows.items()}
        del rows["epoch"]
        no_samples = np.zeros((0, 1))
        outcome = Outcome(metrics={}, samples=no_samples, history=rows, events=events)
        self._write_lines(_lines("model", outcome))

    def _write_lines(self, lines: list[dict]) -> None:
        self.write("history.jsonl", "".join(json.dumps(line) + "\n" for line in lines))

    def write_figures(self, figures: Mapping[str, Any]) -> None:
        """Write each matplotlib figure as .png and .svg, and each `Page` as .html."""
        for name, figure in figures.items():
            if isinstance(figure, Page):
                self.write(f"figures/{name}.html", figure.html)
                continue
            for suffix in ("png", "svg"):
                drawn = io.BytesIO()
                figure.savefig(drawn, format=suffix, dpi=150)
                self.write(f"figures/{name}.{suffix}", drawn.getvalue())

    def write_environment(self) -> None:
        """Write what the run runs on; a resumed run keeps what it was started with."""
        if (self.path / "environment.json").is_file():
            return
        names = (
            "equistein",
            "jax",
            "jaxlib",
            "equinox",
            "optax",
            "numpy",
            "matplotlib",
        )
        self.write_json(
            "environment.json",
            {
                "started": datetime.datetime.now(datetime.UTC).isoformat(),
                "command": ["equistein", *sys.argv[1:]],
                "commit": _commit(),
                "python": platform.python_version(),
                "platform": platform.platform(),
                "cpus": os.cpu_count(),
                "devices": [str(device) for device in jax.devices()],
                "x64": jax.dtypes.canonicalize_dtype(float) == np.float64,
                "versions": {name: importlib.metadata.version(name) for name in names},
            },
        )


def summarize(metrics: Mapping[str, np.ndarray]) -> dict[str, float | None]:
    """Return each metric's mean over seeds, and with several seeds its spread.

    What is not finite is None, which JSON has a word for.
    """
    summary = {}
    for name, values in metrics.items():
        summary[name] = _json_number(np.mean(values))
        if np.size(values) > 1:
            with np.errstate(invalid="ignore"):  # what was never reached is infinite
                summary[f"{name}_sd"] = _json_number(np.std(values, ddof=1))
            summary[f"{name}_min"] = _json_number(np.min(values))
            summary[f"{name}_max"] = _json_number(np.max(values))
    return summary


def _json_number(value: Any) -> float | None:
    return float(value) if np.isfinite(value) else None


def as_json(config: Any) -> dict:
    """Return a configuration as a JSON object."""
    return json.loads(json.dumps(dataclasses.asdict(config)))


def _lines(name: str, outcome: Outcome) -> list[dict]:
    lines = []
    if outcome.history:
        steps = outcome.history["step"]
        lines = [
            {"name": name, "seed_index": seed} | _recorded(outcome.history, seed, i)
            for seed in range(steps.shape[0])
            for i in range(steps.shape[1])
        ]
    return [*lines, *({"name": name} | event for event in outcome.events)]


def _recorded(history: Mapping[str, np.ndarray], seed: int, step: int) -> dict:
    """Return what was recorded at a step; what was not looked at then is NaN."""
    values = {name: column[seed, step].item() for name, column in history.items()}
    return {name: value for name, value in values.items() if value == value}


def _commit() -> str | None:
    """Return the commit of the source this was imported from, if it is a checkout."""
    root = pathlib.Path(__file__).parents[3]
    if not (root / ".git").exists():
        return None
    try:
        done = subprocess.run(
            ["git", "describe", "--always", "--dirty"],
            cwd=root, capture_output=True, text=True, timeout=10, check=True,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
