"""A page that compares several runs."""

import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

from equistein._errors import UserError
from equistein.runs._folder import RunFolder
from equistein.runs._headlines import RESERVED
from equistein.runs._history_curves import history_figures
from equistein.runs._page import is_page, lines_of, PageFigure, Picture, write_page
from equistein.runs._words import Words

_KIND = "comparison"


def write_comparison(
    folders: Sequence[RunFolder], words: Sequence[Words], path: pathlib.Path
) -> None:
    """Write a page that compares numbers, figures and settings of several runs.

    Args:
        folders: The folders of the runs.
        words: What the report of each says.
        path: The page.

    Raises:
        UserError: If a file of a run is missing or damaged, or the page would replace
            another kind of file.
    """
    check_comparison(path)
    named = _named(folders)
    of_run = dict(zip(named, words, strict=True))
    labels = {}
    for name, folder in named.items():
        for entry in folder.read_json("metrics.json"):
            told = of_run[name].labels.get(entry, entry)
            labels[f"{name}: {entry}"] = f"{name}: {told}"
    metrics = _merged(named)
    floors = [w.floor for w, f in zip(words, folders, strict=True) if _floor(f)]
    about = Words(
        title="Runs compared",
        lead=", ".join(named),
        labels=labels,
        floor=f"{floors[0]}, of the first run that has one" if floors else "",
        floor_note="The floor is that of the first run that has one.",
        headlines=next((w.headlines for w in words if w.headlines), ()),
    )
    try:
        figures = [*_beside(named, of_run), *history_figures(named, labels)]
        settings = _differing(named)
        write_page(path, about, metrics, figures, settings, kind=_KIND)
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
        raise UserError(f"A file of the runs is damaged: {error}.") from None


def check_comparison(path: pathlib.Path) -> None:
    """Raise unless a page that compares runs can be written without loss.

    Raises:
        UserError: If there is another kind of file.
    """
    if not is_page(path, _KIND):
        raise UserError(
            f"{path} is there already and compares no runs, so it is not overwritten: "
            "choose another --out."
        )


def _named(folders: Sequence[RunFolder]) -> dict[str, RunFolder]:
    """Return the runs by the names of their folders, or by their paths.

    Raises:
        UserError: If a folder is given twice.
    """
    names = [each.path.name or str(each.path) for each in folders]
    if len(set(names)) < len(names):
        names = [str(each.path) for each in folders]
    if len(set(names)) < len(names):
        raise UserError(f"A run is given twice: compare others, {', '.join(names)}.")
    return dict(zip(names, folders, strict=True))


def _floor(folder: RunFolder) -> dict[str, Any]:
    return folder.read_json("metrics.json").get("floor") or {}


def _merged(folders: Mapping[str, RunFolder]) -> dict[str, Any]:
    """Return the numbers of all runs as those of one."""
    merged: dict[str, Any] = {"num_samples": {}, "seeds": []}
    for name, folder in folders.items():
        metrics = folder.read_json("metrics.json")
        counts = metrics.get("num_samples", {})
        for entry, row in metrics.items():
            if entry not in RESERVED:
                merged[f"{name}: {entry}"] = row
                merged["num_samples"][f"{name}: {entry}"] = counts.get(entry, "")
        if _floor(folder):
            merged.setdefault("floor", _floor(folder))
    return merged


def _differing(folders: Mapping[str, RunFolder]) -> list[tuple[str, str]]:
    """Return the settings in which the runs differ."""
    settings: dict[str, dict[str, str]] = {}
    for name, folder in folders.items():
        for key, value in lines_of(folder.read_config()):
            settings.setdefault(key, {})[name] = value
    differing = [
        (key, "; ".join(f"{name}: {values.get(name, '–')}" for name in folders))
        for key, values in settings.items()
        if len({values.get(name) for name in folders}) > 1
    ]
    return differing or [("all settings", "the same")]


def _beside(
    folders: Mapping[str, RunFolder], words: Mapping[str, Words]
) -> list[PageFigure]:
    """Return each figure of all runs that have it, side by side and small."""
    from equistein.plotting import thumbnail  # loads matplotlib

    pictures: dict[str, list[Picture]] = {}
    captions: dict[str, str] = {}
    for name, folder in folders.items():
        for path in (folder.path / "figures").glob("*.png"):
            try:
                small = thumbnail(path.read_bytes())
            except ValueError as error:
                raise UserError(
                    f"{path}: {error}. `equistein resume {folder.path}` may draw it "
                    "anew, or delete it."
                ) from None
            pictures.setdefault(path.stem, []).append(Picture(small, name))
            captions[path.stem] = words[name].captions.get(path.stem, "")
    named = [stem for each in words.values() for stem in each.captions]
    order = [*dict.fromkeys(named), *sorted(set(pictures) - set(named))]
    return [
        PageFigure(stem, pictures[stem], caption=captions[stem])
        for stem in order
        if stem in pictures
    ]
