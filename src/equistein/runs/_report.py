"""Reports: one HTML file with headlines, figures, numbers and settings."""

import base64
import dataclasses
import functools
import importlib.resources
import math
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import jinja2

from equistein._files import write_whole
from equistein._limits import LimitError
from equistein.runs._folder import RunFolder, UserError

_COPIES = 4  # of a file in memory while the report is made
_MOST = 4  # headlines, by default
_SPREAD = ("_sd", "_min", "_max", "_num_finite")  # suffixes of the spread over seeds
_BETTER = {
    "lower": "lower is better",
    "higher": "higher is better",
    "zero": "best is 0",
}

_Metrics = Mapping[str, Any]  # the content of metrics.json


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReportText:
    """The text of a report, beside its numbers and figures.

    Attributes:
        lead: What was run, in a sentence or two.
        unfinished: What is still to be done, of an interrupted run.
        notes: For an entry, a sentence that its numbers need.
        labels: What figures call entries, where that is not their name.
        captions: For a figure, by its name, what it shows.
        floor: What the row of the floor is called.
        floor_note: What the floor is.
        headlines: The metrics that it begins with; by default the first few.
        data: What is in the data, a sentence each.
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
    data: Sequence[str] = ()


@functools.cache
def _template() -> Any:
    source = importlib.resources.files("equistein.runs") / "report.html.jinja"
    made = jinja2.Environment(autoescape=True, trim_blocks=True)
    made.filters["base64"] = lambda data: base64.b64encode(data).decode()
    made.globals |= {"about_of": _about_of, "cell": _cell}
    return made.from_string(source.read_text(encoding="utf-8"))


def _lines(value: Any, name: str = "") -> list[tuple[str, str]]:
    """Return the settings of a JSON object in lines, nested ones by dotted names."""
    if isinstance(value, Mapping) and (value or not name):
        inner = ((f"{name}.{key}" if name else str(key), v) for key, v in value.items())
        return [line for key, part in inner for line in _lines(part, key)]
    if isinstance(value, list):
        return [(name, ", ".join(map(str, value)))]
    return [(name, "–" if value is None else str(value))]


def write_report(folder: RunFolder, text: ReportText | None = None) -> pathlib.Path:
    """Write report.html from the files of the run and return its path.

    Its text is written into report.json, or read from there if it is not given.
    """
    if text is not None:
        folder.write_json("report.json", dataclasses.asdict(text))
    path = folder.path / "report.html"
    values, metrics, config, environment = (
        folder.read_json(f"{name}.json")
        for name in ("report", "metrics", "config", "environment")
    )
    try:
        text, columns = ReportText(**values), _columns_of(metrics)
        directed = lambda n: _about_of(metrics, n)["better"] in ("lower", "higher")
        ranks = {n: list(_rank(metrics, n)) for n in columns if directed(n)}
        page = _template().render(
            text=text, metrics=metrics, figures=_figures_of(folder, text.captions),
            best={n: order[0] for n, order in ranks.items() if len(order) > 1},
            columns=columns, headlines=headlines(metrics, text),
            settings=_lines(config), environment=dict(_lines(environment)),
        )  # fmt: skip
        write_whole(path, page.encode("utf-8", "backslashreplace"))
    except (LimitError, OSError):
        raise
    except Exception as error:  # damaged files may raise nearly anything
        raise UserError(f"A file in {folder.path} is damaged: {error!r}.") from None
    return path


def _figures_of(
    folder: RunFolder, captions: Mapping[str, str]
) -> dict[str, str | bytes]:
    """Return the figures of a run in the order of the captions, HTML last."""
    order, figures = {name: place for place, name in enumerate(captions)}, {}
    place = lambda path: (order.get(path.stem, len(order)), path.stem)
    for suffix in ("png", "html"):
        for path in sorted((folder.path / "figures").glob(f"*.{suffix}"), key=place):
            content = folder.read(f"figures/{path.name}", _COPIES)
            figures[path.stem] = content.decode() if suffix == "html" else content
    return figures


def round_to_spread(value: Any, spread: Any = None) -> str:
    """Return a number to two digits of its spread, or three digits without one."""
    if not isinstance(value, int | float) or not math.isfinite(value):
        return "–"
    if not isinstance(spread, int | float) or not 0 < spread < math.inf:
        return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"
    places = min(max(0, 1 - math.floor(math.log10(spread))), 6)
    return f"{value:.{places}f} ± {spread:.{places}f}"


def _columns_of(metrics: _Metrics) -> list[str]:
    """Return the metrics of the table, without the spread of other metrics."""
    rows = [*metrics["entries"].values(), metrics["floor"]]
    names = dict.fromkeys(name for row in rows for name in row)
    spreads = {f"{name}{suffix}" for name in names for suffix in _SPREAD}
    return [name for name in names if name not in spreads]


def _about_of(metrics: _Metrics, name: str) -> dict[str, str]:
    """Return the `label` of a metric, with its unit, and which values are `better`."""
    about = metrics["about"].get(name)
    if about is None:
        return {"label": name.replace("_", " "), "better": ""}
    unit = f" ({about['unit']})" if about["unit"] else ""
    return {"label": f"{about['label']}{unit}", "better": about["better"]}


def _rank(metrics: _Metrics, name: str) -> dict[str, float]:
    """Return the finite values of a metric by entry, the best one first."""
    values = {
        entry: row[name]
        for entry, row in metrics["entries"].items()
        if isinstance(row.get(name), int | float) and math.isfinite(row[name])
    }
    better, floor = _about_of(metrics, name)["better"], metrics["floor"].get(name)
    loss = {
        "lower": lambda value: value,
        "higher": lambda value: -value,
        "zero": abs,
        "": lambda value: 0 if floor is None else abs(value - floor),
    }[better]
    return dict(sorted(values.items(), key=lambda item: loss(item[1])))


def headlines(metrics: _Metrics, text: Any) -> list[dict[str, str]]:
    """Return the headlines of a report: numbers with what they are better than."""
    columns = _columns_of(metrics)
    chosen = [name for name in text.headlines if name in columns]
    if not chosen:  # the first that have a direction, those with a floor before others
        directed = [name for name in columns if _about_of(metrics, name)["better"]]
        chosen = sorted(directed, key=lambda n: n not in metrics["floor"])[:_MOST]
    return [_headline(metrics, text, n) for n in chosen if _rank(metrics, n)]


def _headline(metrics: _Metrics, text: Any, name: str) -> dict[str, str]:
    values, floor = _rank(metrics, name), metrics["floor"].get(name)
    label, better = _about_of(metrics, name).values()
    named = lambda entry: text.labels.get(entry, entry)
    number = lambda row: round_to_spread(row[name], row.get(f"{name}_sd"))
    winners, notes = [best := next(iter(values))], []
    if floor is not None and better == "lower":
        # Below the floor nothing is better: it is as good as the floor.
        winners = [entry for entry in values if values[entry] <= floor] or winners
        notes += ["all as good as the floor"] if len(winners) > 1 else []
    nearest = floor is not None and f"best is nearest to {text.floor}"
    notes.append(_BETTER.get(better, nearest))
    others = [entry for entry in values if entry not in winners]
    ends = dict.fromkeys(others[:1] + others[-1:])
    texts = [f"{named(entry)} {round_to_spread(values[entry])}" for entry in ends]
    notes.append(texts and f"others: {' and '.join(texts)}")
    notes.append(floor is not None and f"{text.floor} {number(metrics['floor'])}")
    num = metrics.get("num_samples", {}).get(best)
    notes.append(num and f"{num} samples")
    return {
        "metric": label,
        "value": number(metrics["entries"][best]),
        "entry": ", ".join(map(named, winners)),
        "comparison": "; ".join(filter(None, notes)),
    }


def _cell(row: Mapping[str, Any], name: str) -> tuple[str, str]:
    """Return the mean of a metric with its spread, and the range over the seeds."""
    value = round_to_spread(row[name], row.get(f"{name}_sd")) if name in row else ""
    ends = [
        round_to_spread(row[key])
        for key in (f"{name}_min", f"{name}_max")
        if key in row
    ]
    spread = " … ".join(dict.fromkeys(ends))
    if f"{name}_num_finite" in row:
        number = row[f"{name}_num_finite"]
        return spread, f"in {number} seeds; no number in others"
    return value, spread
