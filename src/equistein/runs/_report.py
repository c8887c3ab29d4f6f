"""The report of a run: one HTML file from its folder and some words."""

import base64
import dataclasses
import html
import json
import math
import pathlib
from collections.abc import Mapping
from typing import Any

from equistein.runs._folder import RunFolder

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
    """

    title: str
    lead: str = ""
    notes: Mapping[str, str] = dataclasses.field(default_factory=dict)
    captions: Mapping[str, str] = dataclasses.field(default_factory=dict)
    floor: str = "exact samples"
    floor_note: str = (
        "The floor is what as many exact samples score against exact samples."
    )


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
    title, captions = html.escape(words.title), words.captions
    figures = sorted((folder.path / "figures").glob("*.png"))
    pages = sorted((folder.path / "figures").glob("*.html"))
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8>",
        "<meta name=viewport content='width=device-width'>",
        f"<title>{title}</title><style>{_STYLE}</style>",
        f"<h1>{title}</h1><p class=lead>{html.escape(words.lead)}</p>",
        _conclusion(folder),
        *(_figure(path, captions.get(path.stem, "")) for path in figures),
        *(_page(path, captions.get(path.stem, "")) for path in pages),
        "<h2>Numbers</h2>",
        _table(metrics, words),
        _notes(words.notes, metrics),
        "<h2>Settings</h2>",
        f"<pre>{html.escape(json.dumps(described, indent=1))}</pre>",
        "<h2>Environment</h2>",
        f"<pre>{html.escape(json.dumps(environment, indent=1))}</pre></html>",
    ]
    folder.write("report.html", "\n".join(parts))
    return folder.path / "report.html"


def _conclusion(folder: RunFolder) -> str:
    """Return what the run concluded, if it did."""
    path = folder.path / _CONCLUSION
    if not path.is_file():
        return ""
    text = path.read_text(encoding="utf-8", errors="replace")
    return f"<p><b>{html.escape(text)}</b>"


def _figure(path: pathlib.Path, caption: str) -> str:
    data, name = base64.b64encode(path.read_bytes()).decode(), html.escape(path.stem)
    image = f"<img alt='{name}' src='data:image/png;base64,{data}'>"
    return f"<figure>{image}<figcaption>{html.escape(caption)}</figcaption></figure>"


def _page(path: pathlib.Path, caption: str) -> str:
    # In a frame of its own, whose script reaches nothing but itself.
    content = html.escape(path.read_text(encoding="utf-8"))
    page = f"<iframe sandbox='allow-scripts' srcdoc=\"{content}\"></iframe>"
    return f"<figure>{page}<figcaption>{html.escape(caption)}</figcaption></figure>"


def _table(metrics: Mapping[str, Any], words: Words) -> str:
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
        label = f"floor: {words.floor}" if name == "floor" else name
        count = html.escape(str(counts.get(name, "")))
        cells = "".join(f"<td>{_cell(row, column)}" for column in columns)
        lines.append(f"<tr{kind}><td>{html.escape(label)}<td>{count}{cells}")
    seeds = metrics.get("seeds", [])
    spread = ""
    if len(seeds) > 1:
        spread = (
            f"Mean over {len(seeds)} seeds, plus or minus the standard deviation, with "
            "the smallest and the largest below. "
        )
    told = html.escape(spread + words.floor_note)
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
