"""Reports and comparisons: one HTML file with headlines, figures, numbers, settings."""

import base64
import dataclasses
import functools
import importlib.resources
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import jinja2

from equistein._files import write_whole
from equistein.runs._folder import RunFolder, UserError
from equistein.runs._tables import about_of, cell, columns_of, headlines, ranked

_COMPARED = "Runs compared"  # the title by which a comparison is recognized
_COPIES = 4  # of a file in memory while the report is made
_DAMAGED = (
    ArithmeticError, AttributeError, LookupError, TypeError, ValueError,
    jinja2.TemplateError,
)  # fmt: skip


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReportText:
    """The text of a report, beside its numbers and figures.

    Attributes:
        title: The title.
        lead: What was run, in a sentence or two.
        unfinished: What is still to be done, of an interrupted run.
        notes: For an entry, a sentence that its numbers need.
        labels: What figures call entries, where that is not their name.
        captions: For a figure, by its name, what it shows.
        floor: What the row of the floor is called.
        floor_note: What the floor is.
        headlines: The metrics that it begins with; by default the first few.
    """

    title: str
    lead: str = ""
    unfinished: str = ""
    notes: Mapping[str, str] = dataclasses.field(default_factory=dict)
    labels: Mapping[str, str] = dataclasses.field(default_factory=dict)
    captions: Mapping[str, str] = dataclasses.field(default_factory=dict)
    floor: str = "exact samples"
    floor_note: str = (
        "The floor is what as many exact samples score against exact samples."
    )
    headlines: Sequence[str] = ()


def write_page(
    path: pathlib.Path,
    text: ReportText,
    metrics: Mapping[str, Any],
    figures: Mapping[str, Any],
    settings: Mapping[str, Any],
    environment: Mapping[str, Any] | None = None,
) -> None:
    """Write a page.

    Args:
        path: The file; one that exists is replaced.
        text: The text.
        metrics: As in metrics.json.
        figures: By name the content of a .png file, HTML, or the .png files of several
            runs, which stand side by side.
        settings: As in config.json.
        environment: As in environment.json.

    Raises:
        OSError: If it cannot be written.
    """
    best = {}
    for name in (columns := columns_of(metrics)):
        order = list(ranked(metrics, name))
        if len(order) > 1 and about_of(metrics, name)["better"] in ("lower", "higher"):
            best[name] = order[0]
    content = _template().render(
        text=text, metrics=metrics, figures=figures, best=best,
        columns=columns, headlines=headlines(metrics, text),
        settings=described_settings(settings),
        environment=dict(described_settings(environment or {})),
    )  # fmt: skip
    write_whole(path, content.encode("utf-8", "backslashreplace"))


@functools.cache
def _template() -> Any:
    source = importlib.resources.files("equistein.runs") / "report.html.jinja"
    made = jinja2.Environment(autoescape=True, trim_blocks=True)
    made.filters["base64"] = lambda data: base64.b64encode(data).decode()
    made.globals |= {"about_of": about_of, "cell": cell}
    return made.from_string(source.read_text(encoding="utf-8"))


def described_settings(value: Any, name: str = "") -> list[tuple[str, str]]:
    """Return the settings of a JSON object in lines, nested ones by dotted names."""
    if isinstance(value, Mapping) and (value or not name):
        inner = ((f"{name}.{key}" if name else str(key), v) for key, v in value.items())
        return [line for key, part in inner for line in described_settings(part, key)]
    if isinstance(value, list):
        return [(name, ", ".join(map(str, value)))]
    return [(name, "–" if value is None else str(value))]


def write_text(folder: RunFolder, text: ReportText) -> None:
    """Write report.json, the text of the report."""
    folder.write_json("report.json", dataclasses.asdict(text))


def write_report(folder: RunFolder) -> pathlib.Path:
    """Write report.html from the files of the run and return its path.

    Raises:
        UserError: If a file of the run is missing or damaged.
    """
    path = folder.path / "report.html"
    values, metrics, config, environment = (
        folder.read_json(f"{name}.json")
        for name in ("report", "metrics", "config", "environment")
    )
    try:
        text = ReportText(**values)
        figures = _figures_of(folder, text.captions)
        write_page(path, text, metrics, figures, config, environment)
    except _DAMAGED as error:
        raise UserError(f"A file in {folder.path} is damaged: {error!r}.") from None
    return path


def _figures_of(
    folder: RunFolder, captions: Mapping[str, str], suffixes: str = "png html"
) -> dict[str, str | bytes]:
    """Return the figures of a run in the order of the captions, HTML last."""
    order, figures = list(captions), {}
    for suffix in suffixes.split():
        paths = sorted((folder.path / "figures").glob(f"*.{suffix}"))
        paths.sort(key=lambda p: order.index(p.stem) if p.stem in order else len(order))
        for path in paths:
            content = folder.read(f"figures/{path.name}", _COPIES)
            figures[path.stem] = content.decode() if suffix == "html" else content
    return figures


def write_comparison(folders: Sequence[RunFolder], path: pathlib.Path) -> None:
    """Write a page that compares numbers, figures and settings of several runs.

    Args:
        folders: The folders of the runs.
        path: The page; of files that exist only another comparison is replaced.

    Raises:
        UserError: If a file of a run is missing or damaged, or the page would replace
            another kind of file.
    """
    mark = f"<title>{_COMPARED}</title>".encode()
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
    try:
        _compare(runs, path)
    except _DAMAGED as error:
        raise UserError(f"A file of the runs is damaged: {error!r}.") from None


def _compare(runs: Mapping[str, RunFolder], path: pathlib.Path) -> None:
    entries, floor, counts, about, labels = {}, {}, {}, {}, {}
    captions, figures, wanted, settings, floor_name = {}, {}, (), {}, ""
    for run, folder in runs.items():
        metrics = folder.read_json("metrics.json")
        text = ReportText(**folder.read_json("report.json"))
        for name, row in metrics["entries"].items():
            entries[f"{run}: {name}"] = row
            counts[f"{run}: {name}"] = metrics.get("num_samples", {}).get(name, "")
            labels[f"{run}: {name}"] = f"{run}: {text.labels.get(name, name)}"
        if not floor:
            floor, floor_name = metrics["floor"], text.floor
        wanted = wanted or text.headlines
        about |= metrics["about"]
        captions |= text.captions
        for name, picture in _figures_of(folder, text.captions, "png").items():
            figures.setdefault(name, {})[run] = picture
        for key, value in described_settings(folder.read_json("config.json")):
            settings.setdefault(key, dict.fromkeys(runs, "–"))[run] = value
    differing = {
        key: "; ".join(map(": ".join, values.items()))
        for key, values in settings.items()
        if len(set(values.values())) > 1
    }
    both = ReportText(
        title=_COMPARED, lead=", ".join(runs), labels=labels, captions=captions,
        headlines=wanted, floor=floor_name,
        floor_note="The floor is that of the first run that has one.",
    )  # fmt: skip
    merged = {"entries": entries, "floor": floor, "num_samples": counts, "about": about}
    write_page(path, both, merged, figures, differing or {"settings": "all the same"})
