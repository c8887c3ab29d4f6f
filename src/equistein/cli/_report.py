"""`equistein report`: one HTML file from a run folder, and from nothing else."""

import base64
import html
import json
import math
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

from equistein.cli._folder import RunFolder, UserError
from equistein.experiments import EXPERIMENTS

_STYLE = """
body{font:15px/1.5 system-ui,sans-serif;max-width:64rem;margin:2rem auto;padding:0 1rem;
color:#222}h1{margin-bottom:.2rem}h2{margin-top:2.2rem}.lead{color:#555;margin-top:0}
table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:13px}
.wide{overflow-x:auto}th,td{padding:.3rem .6rem;border-bottom:1px solid #ddd;
text-align:right;white-space:nowrap}th:first-child,td:first-child{text-align:left}
tr.floor td{color:#777;font-style:italic}small{color:#888}figure{margin:1.5rem 0}
img{max-width:100%}iframe{width:100%;height:820px;border:0}figcaption{color:#555;font-size:13px}
pre{background:#f6f6f6;padding:.8rem;overflow-x:auto;font-size:12px}
"""
_EXTRA = ("_sd", "_min", "_max")
_RESERVED = ("seeds", "num_samples", "floor")


def write_report(folder: RunFolder) -> pathlib.Path:
    """Write report.html from the files of the run and return its path."""
    described = folder.read_json("config.json")
    metrics = folder.read_json("metrics.json")
    environment = folder.read_json("environment.json")
    title, lead, notes, captions = _words(described)
    figures = sorted((folder.path / "figures").glob("*.png"))
    pages = sorted((folder.path / "figures").glob("*.html"))
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8>",
        "<meta name=viewport content='width=device-width'>",
        f"<title>{html.escape(title)}</title><style>{_STYLE}</style>",
        f"<h1>{html.escape(title)}</h1><p class=lead>{html.escape(lead)}</p>",
        *(_figure(path, captions.get(path.stem, "")) for path in figures),
        *(_page(path, captions.get(path.stem, "")) for path in pages),
        "<h2>Numbers</h2>",
        _table(metrics, described.get("words", {})),
        _notes(notes, metrics),
        "<h2>Settings</h2>",
        f"<pre>{html.escape(json.dumps(described, indent=1))}</pre>",
        "<h2>Environment</h2>",
        f"<pre>{html.escape(json.dumps(environment, indent=1))}</pre></html>",
    ]
    folder.write("report.html", "\n".join(parts))
    return folder.path / "report.html"


def report(arguments: Sequence[str]) -> int:
    """Write the reports of the given runs anew, and compare several.

    Raises:
        UserError: If no folder is given, or one is not a run folder.
    """
    if not arguments or arguments[0].startswith("-"):
        raise UserError("usage: equistein report RUN_DIR [RUN_DIR ...]")
    folders = [RunFolder.open(pathlib.Path(argument)) for argument in arguments]
    for folder in folders:
        if not (folder.path / "metrics.json").is_file():
            raise UserError(
                f"{folder.path} has no results yet; `equistein resume {folder.path}`."
            )
    for folder in folders:
        try:
            print(write_report(folder))
        except (AttributeError, KeyError, TypeError) as error:
            message = f"A file in {folder.path} is damaged: {error}."
            raise UserError(message) from None
    if len(folders) > 1:
        for folder in folders:
            _print_metrics(folder)
    return 0


def _print_metrics(folder: RunFolder) -> None:
    metrics = folder.read_json("metrics.json")
    print(f"\n{folder.path}")
    for name, numbers in metrics.items():
        if name not in ("seeds", "num_samples"):
            shown = {k: v for k, v in numbers.items() if not k.endswith(_EXTRA)}
            print(f"  {name:<22}", end="")
            print("  ".join(f"{key} {_number(value)}" for key, value in shown.items()))


def _words(described: Mapping[str, Any]) -> tuple[str, str, Mapping, Mapping]:
    if described.get("command") == "run":
        experiment = EXPERIMENTS.get(str(described.get("experiment")))
        if experiment is not None:
            lead = (
                f"{experiment.summary}. {experiment.figure.capitalize()} of Jaini, "
                f"Holdijk and Welling (2021); preset {described.get('preset')}."
            )
            return experiment.name, lead, experiment.notes, experiment.captions
    words = described.get("words", {})
    return (
        str(words.get("title", "equistein run")),
        str(words.get("lead", "")),
        words.get("notes", {}),
        words.get("captions", {}),
    )


def _figure(path: pathlib.Path, caption: str) -> str:
    data = base64.b64encode(path.read_bytes()).decode()
    return (
        f"<figure><img alt='{html.escape(path.stem)}' "
        f"src='data:image/png;base64,{data}'>"
        f"<figcaption>{html.escape(caption)}</figcaption></figure>"
    )


def _page(path: pathlib.Path, caption: str) -> str:
    # In a frame of its own, whose script reaches nothing but itself.
    content = html.escape(path.read_text(encoding="utf-8"))
    return (
        f"<figure><iframe sandbox='allow-scripts' srcdoc=\"{content}\"></iframe>"
        f"<figcaption>{html.escape(caption)}</figcaption></figure>"
    )


def _table(metrics: Mapping[str, Any], words: Mapping[str, Any]) -> str:
    rows = {name: row for name, row in metrics.items() if name not in _RESERVED}
    rows["floor"] = metrics.get("floor", {})
    columns: dict[str, None] = {}
    for row in rows.values():
        columns |= {name: None for name in row if not name.endswith(_EXTRA)}
    counts = metrics.get("num_samples", {})
    head = "".join(f"<th>{html.escape(c.replace('_', ' '))}" for c in columns)
    lines = [f"<div class=wide><table><tr><th><th>samples{head}"]
    for name, row in rows.items():
        kind = " class=floor" if name == "floor" else ""
        label = f"floor: {words.get('floor', 'exact samples')}"
        label = label if name == "floor" else name
        count = html.escape(str(counts.get(name, "")))
        cells = "".join(f"<td>{_cell(row, column)}" for column in columns)
        lines.append(f"<tr{kind}><td>{html.escape(label)}<td>{count}{cells}")
    seeds = metrics.get("seeds", [])
    told = "The floor is what as many exact samples score against exact samples."
    spread = ""
    if len(seeds) > 1:
        spread = (
            f"Mean over {len(seeds)} seeds, plus or minus the standard deviation, with "
            "the smallest and the largest below. "
        )
    told = html.escape(spread + words.get("floor_note", told))
    lines.append(f"</table></div><p><small>{told}</small>")
    return "\n".join(lines)


def _cell(row: Mapping[str, float], column: str) -> str:
    if column not in row:
        return ""
    text = _number(row[column])
    if f"{column}_sd" in row:
        text += f" ± {_number(row[f'{column}_sd'])}<br><small>"
        text += f"{_number(row[f'{column}_min'])} … {_number(row[f'{column}_max'])}"
        text += "</small>"
    return text


def _number(value: Any) -> str:
    if not isinstance(value, int | float) or math.isnan(value):
        return "–"
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"


def _notes(notes: Mapping[str, str], metrics: Mapping[str, Any]) -> str:
    shown = [
        f"<li><b>{html.escape(name)}</b>: {html.escape(text)}"
        for name, text in notes.items()
        if name in metrics
    ]
    return f"<ul>{''.join(shown)}</ul>" if shown else ""
