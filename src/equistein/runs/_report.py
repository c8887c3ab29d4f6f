"""A report: one HTML file with headlines, figures, numbers and settings."""

import base64
import dataclasses
import functools
import importlib.resources
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

from equistein._files import write_whole
from equistein.runs._folder import described_settings, RunFolder, UserError
from equistein.runs._results import WARNING
from equistein.runs._table import headlines, label_of, table_columns, table_rows

_MOST_WARNINGS = 1_000
_COPIES = 4  # of a file in memory while the report is made
_TEXT = "report.json"


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReportText:
    """The text of a report, beside its numbers and figures.

    Attributes:
        title: The title.
        lead: What was run, in a sentence or two.
        conclusion: What was found, in a sentence.
        unfinished: What is still to be done, of an interrupted run.
        notes: For an entry, a sentence that its numbers need.
        labels: What figures call entries, where that is not their name.
        captions: For a figure, by its name, what it shows.
        floor: What the row of the floor is of.
        floor_note: What the floor is.
        headlines: The metrics that it begins with; by default the first few.
        command: The command that makes the same run.
    """

    title: str
    lead: str = ""
    conclusion: str = ""
    unfinished: str = ""
    notes: Mapping[str, str] = dataclasses.field(default_factory=dict)
    labels: Mapping[str, str] = dataclasses.field(default_factory=dict)
    captions: Mapping[str, str] = dataclasses.field(default_factory=dict)
    floor: str = "exact samples"
    floor_note: str = (
        "The floor is what as many exact samples score against exact samples."
    )
    headlines: Sequence[str] = ()
    command: str = ""


@dataclasses.dataclass(frozen=True)
class PageFigure:
    """A figure of a page: pictures side by side, or a part of a page in HTML.

    Attributes:
        name: Its name.
        pictures: The content of .png files, by what each is of; empty for one alone.
        page: HTML in their place.
        caption: What it shows.
    """

    name: str
    pictures: Mapping[str, bytes] = dataclasses.field(default_factory=dict)
    page: str = ""
    caption: str = ""


def write_page(
    path: pathlib.Path,
    text: ReportText,
    metrics: Mapping[str, Any],
    figures: Sequence[PageFigure],
    settings: Sequence[tuple[str, str]],
    warnings: Sequence[tuple[str, str]] = (),
    environment: Sequence[tuple[str, str]] = (),
    *,
    kind: str = "report",
) -> None:
    """Write a page.

    Args:
        path: The file; one that exists is replaced.
        text: The text.
        metrics: As in metrics.json.
        figures: The figures, in order.
        settings: The settings, by name.
        warnings: The entry and the text of each warning.
        environment: What the run ran on, by name.
        kind: What the page is, to recognize it.

    Raises:
        OSError: If it cannot be written.
    """
    columns = table_columns(metrics)
    seeds = metrics.get("seeds") or ()
    note = text.floor_note if metrics.get("floor") else ""
    if len(seeds) > 1:
        note = (
            f"Mean over {len(seeds)} seeds, plus or minus the standard deviation, with "
            f"the smallest and the largest below. {note}"
        )
    content = _template().render(
        kind=kind, text=text, settings=settings, environment=environment, note=note,
        headlines=headlines(metrics, text.headlines, text.floor, text.labels),
        figures=[_shown(figure) for figure in figures],
        columns=[(name.replace("_", " "), label_of(metrics, name)) for name in columns],
        rows=table_rows(metrics, columns, text.floor, text.labels),
        notes=[
            (text.labels.get(name, name), each) for name, each in text.notes.items()
            if name in metrics.get("entries", {})
        ],
        warnings=[(text.labels.get(n, n), each) for n, each in warnings],
    )  # fmt: skip
    write_whole(path, content.encode("utf-8", "backslashreplace"))


def write_text(folder: RunFolder, text: ReportText) -> None:
    """Write report.json, the text of the report."""
    folder.write_json(_TEXT, dataclasses.asdict(text))


def read_text(folder: RunFolder) -> ReportText:
    """Return the text of a run's report.

    Raises:
        UserError: If the file is missing or damaged.
    """
    values = folder.read_json(_TEXT)
    try:
        return ReportText(**values)
    except TypeError as error:
        raise UserError(f"{folder.path / _TEXT} is damaged: {error}.") from None


def write_report(folder: RunFolder) -> pathlib.Path:
    """Write report.html from the files of the run and return its path.

    Raises:
        UserError: If a file of the run is missing or damaged.
    """
    text, path = read_text(folder), folder.path / "report.html"
    metrics = folder.read_json("metrics.json")
    environment = folder.read_json("environment.json")
    warnings = dict.fromkeys(
        (str(line.get("name")), str(line.get("text")))
        for line in folder.read_lines("history.jsonl")
        if line.get("event") == WARNING
    )
    try:
        write_page(
            path, text, metrics, figures_of(folder, text.captions),
            described_settings(folder.read_json("config.json")),
            list(warnings)[:_MOST_WARNINGS], described_settings(environment),
        )  # fmt: skip
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise UserError(f"A file in {folder.path} is damaged: {error!r}.") from None
    return path


def figures_of(folder: RunFolder, captions: Mapping[str, str]) -> list[PageFigure]:
    """Return the figures of a run in the order of the captions, HTML pages last."""
    order = list(captions)
    place = lambda path: (
        path.suffix, order.index(path.stem) if path.stem in order else len(order),
        path.stem,
    )  # fmt: skip
    figures = []
    drawn = folder.path / "figures"
    paths = [*drawn.glob("*.png"), *drawn.glob("*.html")]
    for path in sorted(paths, key=place, reverse=False):
        content = folder.read(f"figures/{path.name}", _COPIES)
        caption = captions.get(path.stem, "")
        is_page = path.suffix == ".html"
        figures.append(
            PageFigure(path.stem, page=content.decode("utf-8"), caption=caption)
            if is_page
            else PageFigure(path.stem, {"": content}, caption=caption)
        )
    return sorted(figures, key=lambda figure: bool(figure.page))


def is_page(path: pathlib.Path, kind: str) -> bool:
    """Return whether a file is a page of a kind, or does not exist."""
    if not path.exists():
        return True
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return f'content="equistein {kind}">'.encode() in file.read(1_000)


def _shown(figure: PageFigure) -> dict[str, Any]:
    """Return a figure with alternative texts."""
    name = figure.name.replace("_", " ").replace("-", " ")
    alt = f"{name}: {figure.caption}" if figure.caption else name
    pictures = [
        {
            "data": base64.b64encode(data).decode(),
            "alt": f"{label}: {alt}" if label else alt,
            "label": label,
        }
        for label, data in figure.pictures.items()
    ]
    # A page is in its own frame, whose script reaches nothing else.
    return {
        "pictures": pictures, "page": figure.page, "title": alt,
        "caption": figure.caption, "name": name,
    }  # fmt: skip


@functools.cache
def _template() -> Any:
    import jinja2  # only reports need it

    source = importlib.resources.files("equistein.runs") / "report.html.jinja"
    made = jinja2.Environment(
        autoescape=True, trim_blocks=True, undefined=jinja2.StrictUndefined
    )
    return made.from_string(source.read_text(encoding="utf-8"))
