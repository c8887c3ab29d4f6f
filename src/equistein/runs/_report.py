"""The report of a run: one HTML file from its folder and some words."""

import base64
import dataclasses
import functools
import importlib.resources
import json
import math
import pathlib
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from equistein._files import write_whole
from equistein.runs._folder import RunFolder
from equistein.runs._headlines import headlines, lower_is_better, RESERVED, rounded
from equistein.runs._outcome import WARNING

_EXTRA = ("_sd", "_min", "_max")
_CONCLUSION = "conclusion.txt"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Words:
    """What a report says beside the numbers and the figures.

    Attributes:
        title: The headline.
        lead: What was run, in a sentence or two.
        notes: For a sampler or model, a sentence that its numbers need.
        captions: For a figure, by its name, what it shows.
        floor: What the row of the floor is of.
        floor_note: What the floor is.
        headlines: The metrics that it begins with; if none, some of those there are.
    """

    title: str
    lead: str = ""
    notes: Mapping[str, str] = dataclasses.field(default_factory=dict)
    captions: Mapping[str, str] = dataclasses.field(default_factory=dict)
    floor: str = "exact samples"
    floor_note: str = (
        "The floor is what as many exact samples score against exact samples."
    )
    headlines: Sequence[str] = ()


def write_conclusion(folder: RunFolder, text: str) -> None:
    """Write what the run's report is to say first; nothing where the text is empty."""
    if text:
        folder.write(_CONCLUSION, text + "\n")


def write_report(folder: RunFolder, words: Words) -> pathlib.Path:
    """Write report.html from the files of the run and return its path.

    Raises:
        UserError: If a file of the run is missing or damaged.
    """
    described = folder.read_config()
    metrics = folder.read_json("metrics.json")
    environment = folder.read_json("environment.json")
    named = list(words.captions)
    place = lambda path: (
        named.index(path.stem) if path.stem in named else len(named), path.stem
    )  # fmt: skip
    figures = sorted((folder.path / "figures").glob("*.png"), key=place)
    pages = sorted((folder.path / "figures").glob("*.html"), key=place)
    columns = _columns(metrics)
    folder.write(
        "report.html",
        _template().render(
            words=words,
            conclusion=_conclusion(folder),
            headlines=headlines(metrics, words.headlines, words.floor),
            figures=[_figure(path, words.captions) for path in figures],
            pages=[_page(path, words.captions) for path in pages],
            columns=columns,
            rows=_rows(metrics, columns, words.floor),
            told=_told(metrics, words.floor_note),
            notes=[pair for pair in words.notes.items() if pair[0] in metrics],
            doubts=_doubts(folder),
            command=_command(environment),
            settings=_flat(described),
            environment=_flat(environment),
        ),
    )
    return folder.path / "report.html"


def write_comparison(folders: Sequence[RunFolder], path: pathlib.Path) -> None:
    """Write a page that compares the numbers and the settings of several runs.

    Args:
        folders: The folders of the runs.
        path: The page.

    Raises:
        UserError: If a file of a run is missing or damaged.
    """
    merged: dict[str, Any] = {"num_samples": {}, "seeds": []}
    settings: dict[str, dict[str, str]] = {}
    names = [each.path.name or str(each.path) for each in folders]
    if len(set(names)) < len(names):
        names = [str(each.path) for each in folders]
    for name, folder in zip(names, folders, strict=True):
        metrics = folder.read_json("metrics.json")
        counts = metrics.get("num_samples", {})
        for entry, row in metrics.items():
            if entry not in RESERVED:
                merged[f"{name}: {entry}"] = row
                merged["num_samples"][f"{name}: {entry}"] = counts.get(entry, "")
        if metrics.get("floor"):
            merged.setdefault("floor", metrics["floor"])
        for key, value in _flat(folder.read_config()):
            settings.setdefault(key, {})[name] = value
    differing = [
        (key, "; ".join(f"{name}: {values.get(name, '–')}" for name in names))
        for key, values in settings.items()
        if len({values.get(name) for name in names}) > 1
    ]
    columns, told = _columns(merged), "The floor is that of the first run that has one."
    content = _template().render(
        words=Words(title="Runs compared", lead=", ".join(names)),
        conclusion="",
        headlines=headlines(merged, (), "floor"),
        figures=[],
        pages=[],
        columns=columns,
        rows=_rows(merged, columns, "of the first run that has one"),
        told=told,
        notes=[],
        doubts=[],
        command="",
        settings=differing or [("all settings", "the same")],
        environment=[],
    )
    write_whole(path, content.encode())


@functools.cache
def _template() -> Any:
    import jinja2  # only reports need it

    text = importlib.resources.files("equistein.runs").joinpath("report.html.jinja")
    made = jinja2.Environment(
        autoescape=True, trim_blocks=True, undefined=jinja2.StrictUndefined
    )
    return made.from_string(text.read_text(encoding="utf-8"))


def _conclusion(folder: RunFolder) -> str:
    """Return what the run concluded, if it did."""
    path = folder.path / _CONCLUSION
    if not path.is_file():
        return ""
    return path.read_text(encoding="utf-8", errors="replace")


def _doubts(folder: RunFolder) -> list[tuple[str, str]]:
    """Return of what the run warned, each with the sampler or model it is of."""
    path, found = folder.path / "history.jsonl", {}
    if path.is_file():
        with path.open(encoding="utf-8", errors="replace") as lines:
            for line in lines:
                if f'"{WARNING}"' in line:
                    event = json.loads(line)
                    found[str(event.get("name")), str(event.get("text"))] = None
    return list(found)


def _figure(path: pathlib.Path, captions: Mapping[str, str]) -> dict[str, str]:
    caption = captions.get(path.stem, "")
    data = base64.b64encode(path.read_bytes()).decode()
    alt = f"{path.stem.replace('_', ' ')}: {caption}" if caption else path.stem
    return {"data": data, "alt": alt, "caption": caption}


def _page(path: pathlib.Path, captions: Mapping[str, str]) -> dict[str, str]:
    # In a frame of its own, whose script reaches nothing but itself.
    content = path.read_text(encoding="utf-8")
    return {"content": content, "caption": captions.get(path.stem, "")}


def _columns(metrics: Mapping[str, Any]) -> list[str]:
    """Return the metrics of the table."""
    rows = [row for name, row in metrics.items() if name not in RESERVED]
    rows.append(metrics.get("floor", {}))
    names = dict.fromkeys(name for row in rows for name in row)
    return [name for name in names if not name.endswith(_EXTRA)]


def _rows(
    metrics: Mapping[str, Any], columns: list[str], floor: str
) -> list[dict[str, Any]]:
    """Return the rows of the table, the floor last."""
    entries = {name: row for name, row in metrics.items() if name not in RESERVED}
    best = {column: _best(entries, column) for column in columns}
    counts, made = metrics.get("num_samples", {}), []
    for name, row in [*entries.items(), ("floor", metrics.get("floor", {}))]:
        is_floor = name == "floor"
        cells = [
            {
                "value": rounded(row[c], row.get(f"{c}_sd")) if c in row else "",
                "range": _range(row, c),
                "best": not is_floor and best[c] == name,
            }
            for c in columns
        ]
        label = f"floor: {floor}" if is_floor else name
        made.append(
            {
                "label": label,
                "count": counts.get(name, ""),
                "cells": cells,
                "is_floor": is_floor,
            }
        )
    return made


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
    if f"{column}_sd" not in row:
        return ""
    return f"{rounded(row[f'{column}_min'])} … {rounded(row[f'{column}_max'])}"


def _told(metrics: Mapping[str, Any], floor_note: str) -> str:
    seeds = metrics.get("seeds", [])
    if len(seeds) < 2:
        return floor_note
    return (
        f"Mean over {len(seeds)} seeds, plus or minus the standard deviation, with the "
        f"smallest and the largest below. {floor_note}"
    )


def _command(environment: Mapping[str, Any]) -> str:
    """Return the command that made the run."""
    words = environment.get("command")
    return shlex.join(map(str, words)) if isinstance(words, list) else ""


def _flat(value: Any, name: str = "") -> list[tuple[str, str]]:
    """Return the settings of a JSON object in lines, nested ones by dotted names."""
    if isinstance(value, dict) and value:
        inner = ((f"{name}.{key}" if name else str(key), v) for key, v in value.items())
        return [line for key, part in inner for line in _flat(part, key)]
    if isinstance(value, list):
        return [(name, ", ".join(map(str, value)))]
    return [(name, "–" if value is None else str(value))]
