"""The report of a run, from its folder and some words."""

import json
import pathlib
from collections.abc import Mapping

from equistein.runs._command import command_of
from equistein.runs._folder import RunFolder
from equistein.runs._outcome import WARNING
from equistein.runs._page import (
    Circumstances,
    lines_of,
    PageFigure,
    Picture,
    write_page,
)
from equistein.runs._parts import unfinished
from equistein.runs._words import Words

_CONCLUSION = "conclusion.txt"
_MOST_DOUBTS = 1_000  # that a report shows
_COPIES = 4  # of a file that a report holds, while it is made


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
    path = folder.path / "report.html"
    circumstances = Circumstances(
        unfinished=unfinished(folder),
        conclusion=_conclusion(folder),
        doubts=_doubts(folder),
        command=command_of(words, described, environment),
        environment=lines_of(environment),
    )
    figures = figures_of(folder, words.captions)
    write_page(path, words, metrics, figures, lines_of(described), circumstances)
    return path


def figures_of(folder: RunFolder, captions: Mapping[str, str]) -> list[PageFigure]:
    """Return the figures of a run in the order of the captions, pages to turn last."""
    named = list(captions)
    place = lambda path: (
        named.index(path.stem) if path.stem in named else len(named), path.stem
    )  # fmt: skip
    drawn = folder.path / "figures"
    found = [
        PageFigure(
            path.stem,
            [Picture(folder.read(f"figures/{path.name}", _COPIES))],
            caption=captions.get(path.stem, ""),
        )
        for path in sorted(drawn.glob("*.png"), key=place)
    ]
    return found + [
        PageFigure(
            path.stem,
            page=folder.read(f"figures/{path.name}", _COPIES).decode("utf-8"),
            caption=captions.get(path.stem, ""),
        )
        for path in sorted(drawn.glob("*.html"), key=place)
    ]


def _conclusion(folder: RunFolder) -> str:
    """Return what the run concluded, if it did."""
    if not (folder.path / _CONCLUSION).is_file():
        return ""
    return folder.read(_CONCLUSION, _COPIES).decode("utf-8", "replace")


def _doubts(folder: RunFolder) -> list[tuple[str, str]]:
    """Return of what the run warned, each with the sampler or model it is of."""
    found: dict[tuple[str, str], None] = {}
    if (folder.path / "history.jsonl").is_file():
        for line in folder.read_lines("history.jsonl"):
            if f'"{WARNING}"' in line:
                event = json.loads(line)
                found[str(event.get("name")), str(event.get("text"))] = None
            if len(found) == _MOST_DOUBTS:
                break
    return list(found)
