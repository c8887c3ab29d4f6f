"""Reports and comparisons: one HTML file with headlines, figures, numbers, settings."""

import base64
import dataclasses
import functools
import importlib.resources
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

from equistein._files import write_whole
from equistein.runs._folder import RunFolder, UserError
from equistein.runs._results import WARNING
from equistein.runs._tables import Tables

_MOST_WARNINGS = 1_000
_COPIES = 4  # of a file in memory while the report is made
_TEXT = "report.json"
_DAMAGED = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


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
        environment: What the run ran on, by name, and its command.
        kind: What the page is, to recognize it.

    Raises:
        OSError: If it cannot be written.
    """
    tables = Tables(metrics, text.floor, text.labels)
    seeds = metrics.get("seeds") or ()
    note = text.floor_note if tables.floor else ""
    if len(seeds) > 1:
        note = (
            f"Mean over {len(seeds)} seeds, plus or minus the standard deviation, with "
            f"the smallest and the largest below. {note}"
        )
    content = _template().render(
        kind=kind, text=text, settings=settings, environment=environment, note=note,
        headlines=tables.headlines(text.headlines), figures=figures, rows=tables.rows(),
        columns=[(name, tables.about(name)[0]) for name in tables.columns],
        entries=metrics["entries"], warnings=warnings,
    )  # fmt: skip
    write_whole(path, content.encode("utf-8", "backslashreplace"))


@functools.cache
def _template() -> Any:
    import jinja2  # only reports need it

    source = importlib.resources.files("equistein.runs") / "report.html.jinja"
    made = jinja2.Environment(
        autoescape=True, trim_blocks=True, undefined=jinja2.StrictUndefined
    )
    made.filters["base64"] = lambda data: base64.b64encode(data).decode()
    return made.from_string(source.read_text(encoding="utf-8"))


def write_text(folder: RunFolder, text: ReportText) -> None:
    """Write report.json, the text of the report."""
    folder.write_json(_TEXT, dataclasses.asdict(text))


def _read_text(folder: RunFolder) -> ReportText:
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
    text, path = _read_text(folder), folder.path / "report.html"
    config, metrics, environment = (
        folder.read_json(f"{name}.json")
        for name in ("config", "metrics", "environment")
    )
    warnings = dict.fromkeys(
        (str(line.get("name")), str(line.get("text")))
        for line in folder.read_lines("history.jsonl")
        if line.get("event") == WARNING
    )
    try:
        write_page(
            path, text, metrics, _figures_of(folder, text.captions),
            described_settings(config), list(warnings)[:_MOST_WARNINGS],
            described_settings(environment),
        )  # fmt: skip
    except _DAMAGED as error:
        raise UserError(f"A file in {folder.path} is damaged: {error!r}.") from None
    return path


def _figures_of(folder: RunFolder, captions: Mapping[str, str]) -> list[PageFigure]:
    """Return the figures of a run in the order of the captions, HTML pages last."""
    order = {name: place for place, name in enumerate(captions)}
    drawn = folder.path / "figures"
    figures = []
    for path in sorted(
        [*drawn.glob("*.png"), *drawn.glob("*.html")],
        key=lambda p: (p.suffix == ".html", order.get(p.stem, len(order)), p.stem),
    ):
        content, about = folder.read(f"figures/{path.name}", _COPIES), {}
        if path.suffix == ".html":
            about["page"] = content.decode("utf-8")
        else:
            about["pictures"] = {"": content}
        caption = captions.get(path.stem, "")
        figures.append(PageFigure(path.stem, caption=caption, **about))
    return figures


def described_settings(value: Any, name: str = "") -> list[tuple[str, str]]:
    """Return the settings of a JSON object in lines, nested ones by dotted names."""
    if isinstance(value, Mapping) and value:
        inner = ((f"{name}.{key}" if name else str(key), v) for key, v in value.items())
        return [line for key, part in inner for line in described_settings(part, key)]
    if isinstance(value, list):
        return [(name, ", ".join(map(str, value)))]
    return [(name, "–" if value is None else str(value))]


def write_comparison(folders: Sequence[RunFolder], path: pathlib.Path) -> None:
    """Write a page that compares numbers, figures and settings of several runs.

    Args:
        folders: The folders of the runs.
        path: The page; of files that exist only another comparison is replaced.

    Raises:
        UserError: If a file of a run is missing or damaged, or the page would replace
            another kind of file.
    """
    mark = b'content="equistein comparison">'
    if path.exists() and not (path.is_file() and mark in path.read_bytes()[:1_000]):
        raise UserError(
            f"{path} exists already and compares no runs, so it is not overwritten: "
            "choose another --out."
        )
    runs = {each.path.name or str(each.path): each for each in folders}
    if len(runs) < len(folders):
        runs = {str(each.path): each for each in folders}
    if len(runs) < len(folders):
        raise UserError(f"A run is given twice: compare others, {', '.join(runs)}.")
    texts = {name: _read_text(folder) for name, folder in runs.items()}
    figures = _beside(runs, texts)
    try:
        metrics, labels = _merged(runs, texts)
        first = next(
            (t for t in texts.values() if t.headlines), texts[next(iter(runs))]
        )
        about = ReportText(
            title="Runs compared", lead=", ".join(runs), labels=labels,
            headlines=first.headlines, floor=f"{first.floor}, of the first run",
            floor_note="The floor is that of the first run that has one.",
        )  # fmt: skip
        write_page(path, about, metrics, figures, _differing(runs), kind="comparison")
    except _DAMAGED as error:
        raise UserError(f"A file of the runs is damaged: {error!r}.") from None


def _merged(
    runs: Mapping[str, RunFolder], texts: Mapping[str, ReportText]
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the numbers of all runs as those of one, and what figures call them."""
    merged: dict[str, Any] = {"entries": {}, "num_samples": {}, "about": {}}
    labels = {}
    for name, folder in runs.items():
        metrics = folder.read_json("metrics.json")
        for entry, row in metrics["entries"].items():
            both = f"{name}: {entry}"
            labels[both] = f"{name}: {texts[name].labels.get(entry, entry)}"
            merged["entries"][both] = row
            merged["num_samples"][both] = metrics.get("num_samples", {}).get(entry, "")
        merged["about"] |= metrics["about"]
        if metrics["floor"]:
            merged.setdefault("floor", metrics["floor"])
    return merged, labels


def _differing(runs: Mapping[str, RunFolder]) -> list[tuple[str, str]]:
    """Return the settings in which the runs differ."""
    described = {
        name: dict(described_settings(folder.read_json("config.json")))
        for name, folder in runs.items()
    }
    differing = []
    for key in dict.fromkeys(key for each in described.values() for key in each):
        values = {name: each.get(key, "–") for name, each in described.items()}
        if len(set(values.values())) > 1:
            text = "; ".join(f"{name}: {value}" for name, value in values.items())
            differing.append((key, text))
    return differing or [("all settings", "the same")]


def _beside(
    runs: Mapping[str, RunFolder], texts: Mapping[str, ReportText]
) -> list[PageFigure]:
    """Return each figure of all runs that have it, side by side and small."""
    from equistein.plotting import thumbnail  # loads matplotlib

    joined: dict[str, PageFigure] = {}
    for name, folder in runs.items():
        for figure in _figures_of(folder, texts[name].captions):
            for data in figure.pictures.values():
                before = joined.get(figure.name, PageFigure(figure.name)).pictures
                try:
                    pictures = {**before, name: thumbnail(data)}
                except ValueError as error:
                    path = folder.path / "figures" / f"{figure.name}.png"
                    raise UserError(f"Cannot read {path}: {error}.") from None
                joined[figure.name] = dataclasses.replace(figure, pictures=pictures)
    return list(joined.values())
