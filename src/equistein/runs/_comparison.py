"""A page that compares several runs."""

import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

from equistein.runs._folder import described_settings, RunFolder, UserError
from equistein.runs._report import (
    figures_of,
    is_page,
    PageFigure,
    read_text,
    ReportText,
    write_page,
)

_KIND = "comparison"


def write_comparison(folders: Sequence[RunFolder], path: pathlib.Path) -> None:
    """Write a page that compares numbers, figures and settings of several runs.

    Args:
        folders: The folders of the runs.
        path: The page.

    Raises:
        UserError: If a file of a run is missing or damaged, or the page would replace
            another kind of file.
    """
    if not is_page(path, _KIND):
        raise UserError(
            f"{path} exists already and compares no runs, so it is not overwritten: "
            "choose another --out."
        )
    named = _named(folders)
    texts = {name: read_text(folder) for name, folder in named.items()}
    try:
        metrics, labels = _merged(named, texts)
        settings = _differing(named)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise UserError(f"A file of the runs is damaged: {error!r}.") from None
    first = next(iter(texts.values()))
    about = ReportText(
        title="Runs compared", lead=", ".join(named), labels=labels,
        floor=f"{first.floor}, of the first run that has one",
        floor_note="The floor is that of the first run that has one.",
        headlines=next((t.headlines for t in texts.values() if t.headlines), ()),
    )  # fmt: skip
    write_page(path, about, metrics, _beside(named, texts), settings, kind=_KIND)


def _named(folders: Sequence[RunFolder]) -> dict[str, RunFolder]:
    """Return the runs by the names of their folders, or by their paths."""
    names = [each.path.name or str(each.path) for each in folders]
    if len(set(names)) < len(names):
        names = [str(each.path) for each in folders]
    if len(set(names)) < len(names):
        raise UserError(f"A run is given twice: compare others, {', '.join(names)}.")
    return dict(zip(names, folders, strict=True))


def _merged(
    folders: Mapping[str, RunFolder], texts: Mapping[str, ReportText]
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the numbers of all runs as those of one, and what figures call them."""
    merged: dict[str, Any] = {"entries": {}, "num_samples": {}, "about": {}}
    labels = {}
    for name, folder in folders.items():
        metrics = folder.read_json("metrics.json")
        for entry, row in metrics["entries"].items():
            merged["entries"][f"{name}: {entry}"] = row
            merged["num_samples"][f"{name}: {entry}"] = metrics["num_samples"][entry]
            label = texts[name].labels.get(entry, entry)
            labels[f"{name}: {entry}"] = f"{name}: {label}"
        merged["about"] |= metrics["about"]
        if metrics["floor"]:
            merged.setdefault("floor", metrics["floor"])
    return merged, labels


def _differing(folders: Mapping[str, RunFolder]) -> list[tuple[str, str]]:
    """Return the settings in which the runs differ."""
    settings: dict[str, dict[str, str]] = {}
    for name, folder in folders.items():
        for key, value in described_settings(folder.read_json("config.json")):
            settings.setdefault(key, {})[name] = value
    differing = [
        (key, "; ".join(f"{name}: {values.get(name, '–')}" for name in folders))
        for key, values in settings.items()
        if len({values.get(name) for name in folders}) > 1
    ]
    return differing or [("all settings", "the same")]


def _beside(
    folders: Mapping[str, RunFolder], texts: Mapping[str, ReportText]
) -> list[PageFigure]:
    """Return each figure of all runs that have it, side by side and small."""
    from equistein.plotting import thumbnail  # loads matplotlib

    joined: dict[str, PageFigure] = {}
    for name, folder in folders.items():
        for figure in figures_of(folder, texts[name].captions):
            if figure.page:
                continue
            before = joined.get(figure.name, PageFigure(figure.name))
            (data,) = figure.pictures.values()
            try:
                pictures = {**before.pictures, name: thumbnail(data)}
            except ValueError as error:
                path = folder.path / "figures" / f"{figure.name}.png"
                raise UserError(f"Cannot read {path}: {error}.") from None
            joined[figure.name] = PageFigure(
                figure.name, pictures, caption=figure.caption
            )
    return list(joined.values())
