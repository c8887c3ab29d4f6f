"""A report: one HTML file with headlines, figures, numbers and settings."""

import base64
import dataclasses
import functools
import importlib.resources
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

from equistein._files import write_whole
from equistein.runs._headlines import headlines
from equistein.runs._metric_words import in_words
from equistein.runs._table import table_columns, table_rows, told_of
from equistein.runs._words import Words


@dataclasses.dataclass(frozen=True)
class Picture:
    """A picture of a report.

    Attributes:
        data: The content of a .png file.
        label: What it is of, where it stands beside others.
    """

    data: bytes
    label: str = ""


@dataclasses.dataclass(frozen=True)
class PageFigure:
    """A figure of a report: a picture, or the same one of several runs, or a page.

    Attributes:
        name: Its name.
        pictures: The pictures.
        page: A part of a page in HTML, in their place.
        caption: What it shows.
    """

    name: str
    pictures: Sequence[Picture] = ()
    page: str = ""
    caption: str = ""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Circumstances:
    """What a report says of how its run went.

    Attributes:
        unfinished: What of it is not done yet.
        conclusion: What it concluded.
        doubts: Of what it warned, each with the sampler or model it is of.
        command: The command that makes it again.
        environment: What it ran on, by name.
    """

    unfinished: str = ""
    conclusion: str = ""
    doubts: Sequence[tuple[str, str]] = ()
    command: str = ""
    environment: Sequence[tuple[str, str]] = ()


def write_page(
    path: pathlib.Path,
    words: Words,
    metrics: Mapping[str, Any],
    figures: Sequence[PageFigure],
    settings: Sequence[tuple[str, str]],
    circumstances: Circumstances = Circumstances(),
    *,
    kind: str = "report",
) -> None:
    """Write a report.

    Args:
        path: The file; one that is there is replaced.
        words: What it says beside the numbers.
        metrics: The numbers of each entry, `seeds`, `num_samples` and `floor`.
        figures: The figures, in order.
        settings: The settings, by name.
        circumstances: How the run went.
        kind: What the page says that it is, to know it again.

    Raises:
        OSError: If it cannot be written.
    """
    columns, labels = table_columns(metrics), words.labels
    content = _template().render(
        kind=kind,
        words=words,
        circumstances=circumstances,
        headlines=headlines(metrics, words.headlines, words.floor, labels),
        figures=[_shown(figure) for figure in figures],
        columns=[(name.replace("_", " "), in_words(name)) for name in columns],
        rows=table_rows(metrics, columns, words.floor, labels),
        told=told_of(metrics, words.floor_note if metrics.get("floor") else ""),
        notes=[
            (labels.get(name, name), note) for name, note in words.notes.items()
            if name in metrics
        ],
        doubts=[(labels.get(n, n), text) for n, text in circumstances.doubts],
        settings=settings,
    )  # fmt: skip
    write_whole(path, content.encode("utf-8", "backslashreplace"))


def is_page(path: pathlib.Path, kind: str) -> bool:
    """Return whether a file is a page of a kind, or may be replaced by one."""
    if not path.exists():
        return True
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return _mark(kind).encode() in file.read(1_000)


def lines_of(value: Any, name: str = "") -> list[tuple[str, str]]:
    """Return the settings of a JSON object in lines, nested ones by dotted names."""
    if isinstance(value, dict) and value:
        inner = ((f"{name}.{key}" if name else str(key), v) for key, v in value.items())
        return [line for key, part in inner for line in lines_of(part, key)]
    if isinstance(value, list):
        return [(name, ", ".join(map(str, value)))]
    return [(name, "–" if value is None else str(value))]


def _shown(figure: PageFigure) -> dict[str, Any]:
    """Return a figure with texts for those who do not see it."""
    name = figure.name.replace("_", " ").replace("-", " ")
    alt = f"{name}: {figure.caption}" if figure.caption else name
    pictures = [
        {
            "data": base64.b64encode(picture.data).decode(),
            "alt": f"{picture.label}: {alt}" if picture.label else alt,
            "label": picture.label,
        }
        for picture in figure.pictures
    ]
    # A page is in a frame of its own, whose script reaches nothing but itself.
    return {
        "pictures": pictures, "page": figure.page, "title": alt,
        "caption": figure.caption, "name": name,
    }  # fmt: skip


def _mark(kind: str) -> str:
    return f'<meta name="generator" content="equistein {kind}">'


@functools.cache
def _template() -> Any:
    import jinja2  # only reports need it

    text = importlib.resources.files("equistein.runs").joinpath("report.html.jinja")
    made = jinja2.Environment(
        autoescape=True, trim_blocks=True, undefined=jinja2.StrictUndefined
    )
    return made.from_string(text.read_text(encoding="utf-8"))
