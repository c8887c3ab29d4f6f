import dataclasses
import types

import numpy as np
import pytest
from matplotlib.figure import Figure

from browser import check_report, needs_browser
from equistein.plotting import molecule_viewer
from equistein.runs import (
    ReportText,
    RunFolder,
    write_environment,
    write_report,
)
from equistein.runs._report import headlines, round_to_spread

LABELS = {
    "energy_w2": ("distance of energies", "lower"), "accuracy": ("accuracy", "higher"),
    "log_z_error": ("error of log Z", "zero"), "states": ("states", ""),
}  # fmt: skip
ABOUT = {
    name: {"label": label, "better": better, "unit": ""}
    for name, (label, better) in LABELS.items()
}
METRICS = {
    "entries": {
        "plain": {"energy_w2": 0.5, "accuracy": 0.7, "steps": 3.0},
        "equivariant": {
            "energy_w2": 0.12, "energy_w2_sd": 0.031, "energy_w2_min": 0.09,
            "energy_w2_max": 0.15, "accuracy": 0.6, "steps": 3.0,
        },
    },
    "seeds": [0, 1, 2],
    "num_samples": {"plain": 10, "equivariant": 30},
    "floor": {"energy_w2": 0.1},
    "about": ABOUT,
}  # fmt: skip


def metrics_of(rows, floor):
    return {"entries": rows, "floor": floor, "about": ABOUT, "num_samples": {}}


def headlines_of(metrics, wanted=(), floor="exact samples", labels=None):
    text = ReportText(title="t", headlines=wanted, floor=floor, labels=labels or {})
    found = headlines(metrics, text)
    return [types.SimpleNamespace(**each) for each in found]


@pytest.mark.parametrize(
    ("value", "spread", "text"),
    [
        (0.12345, 0.031, "0.123 ± 0.031"),
        (12.345, 2.04, "12.3 ± 2.0"),
        (1234.5, 56.0, "1234 ± 56"),
        (0.12345, None, "0.123"),
        (12345.6, None, "12346"),
        (1.0, 0.0, "1"),
        (None, None, "–"),
        (float("nan"), 0.1, "–"),
        (-2.7785, 0.0066, "-2.7785 ± 0.0066"),
    ],
)
def test_numbers_are_rounded_by_their_spread(value, spread, text):
    assert round_to_spread(value, spread) == text


def test_the_best_comes_first_with_what_it_is_better_than():
    for labels, plain in (({}, "plain"), ({"plain": "plain EBM"}, "plain EBM")):
        first, second = headlines_of(METRICS, labels=labels)
        assert (first.metric, first.value) == ("distance of energies", "0.120 ± 0.031")
        assert first.entry == "equivariant"
        for said in ("lower is", f"{plain} 0.5", "exact samples 0.1", "30 samples"):
            assert said in first.comparison
        assert (second.metric, second.entry) == ("accuracy", plain)
        assert "higher is better" in second.comparison


@pytest.mark.parametrize(
    ("metric", "floor", "best", "said"),
    [
        ("states", {"states": 5.0}, "b", "nearest to data"),
        ("states", {}, "a", "b 4"),
        ("log_z_error", {}, "b", "a -2"),
    ],
)
def test_what_is_best_where_neither_less_nor_more_is(metric, floor, best, said):
    values = {"states": (3.0, 4.0, 9.0), "log_z_error": (-2.0, 1.0, 3.0)}[metric]
    metrics = {name: {metric: value} for name, value in zip("abc", values, strict=True)}
    (only,) = headlines_of(metrics_of(metrics, floor), [metric], "data")
    assert only.entry == best
    assert said in only.comparison


def test_what_is_below_the_floor_is_all_as_good():
    rows = {n: {"energy_w2": x} for n, x in (("a", 0.5), ("b", 0.9), ("c", 2.0))}
    (only,) = headlines_of(metrics_of(rows, {"energy_w2": 1.0}), ["energy_w2"])
    assert (only.entry, only.value) == ("a, b", "0.5")
    assert "as good as the floor" in only.comparison
    assert "c 2" in only.comparison


def test_chosen_headlines_are_taken_and_others_left():
    (only,) = headlines_of(METRICS, ("steps", "nothing"))
    assert (only.metric, only.value) == ("steps", "3")
    assert headlines_of(metrics_of({}, {})) == []
    rows = {"model": {"accuracy": None}}
    assert headlines_of(metrics_of(rows, {})) == []


@pytest.fixture
def folder(tmp_path):
    """The folder of a run with a picture."""
    made = RunFolder.create(tmp_path / "run")
    described = {"command": "experiment", "settings": {"step": 0.1, "sizes": [1, 2]}}
    made.write_json("config.json", described)
    text = ReportText(title="t", captions={"line": "A line."})
    made.write_json("report.json", dataclasses.asdict(text))
    made.write_json("metrics.json", METRICS)
    write_environment(made)
    figure = Figure(figsize=(20, 2))
    figure.subplots().plot([0, 1])
    (made.path / "figures").mkdir()
    figure.savefig(made.path / "figures" / "line.png")
    return made


def test_a_report_calls_entries_as_figures_do(folder):
    labels, notes = {"plain": "plain EBM"}, {"plain": "Coordinates."}
    report_text = ReportText(title="t", labels=labels, notes=notes)
    warnings = [["plain", "It drifts."]]
    folder.write_json("metrics.json", METRICS | {"warnings": warnings})
    text = write_report(folder, report_text).read_text()
    assert "<td>plain EBM<br><small>plain</small></td>" in text
    assert "<b>plain EBM</b>: Coordinates." in text
    assert "<b>plain EBM</b>: It drifts." in text
    assert '<th title="distance of energies">energy w2</th>' in text


def test_a_spread_is_no_metric_but_one_whose_name_ends_as_a_spread_is(folder):
    some = {"steps": None, "steps_sd": 0.2, "steps_min": 1.0, "steps_max": 3.0}
    rows = {"a": {"inner_sd": 0.5, "inner_sd_sd": 0.1, "steps_num_finite": 2} | some}
    folder.write_json("metrics.json", METRICS | {"entries": rows})
    text = write_report(folder).read_text()
    assert "1 … 3<br><small>in 2 seeds; no number in others" in text
    assert ">inner sd</th>" in text
    assert "inner sd sd" not in text


def test_an_interrupted_run_says_so_before_its_numbers(folder):
    folder.write("figures/turned.html", "<p>Turn.</p>")
    left = ReportText(title="t", unfinished="Still to be done: b.")
    page = write_report(folder, left).read_text()
    assert page.index("Still to be done: b.") < page.index('class="card"')
    assert '<iframe title="turned" ' in page


def test_a_report_begins_with_the_answer_and_ends_with_the_settings(folder):
    text = write_report(folder).read_text()
    order = ["0.120 ± 0.031", "data:image/png", "<h2>Numbers", "settings.step"]
    places = [text.index(part) for part in order]
    assert places == sorted(places)
    assert 'alt="line: A line."' in text
    assert '<td class="best">0.120 ± 0.031' in text
    assert "1, 2" in text
    assert "prefers-color-scheme:dark" in text


@pytest.mark.slow
@needs_browser
def test_a_report_is_shown_without_errors_and_molecules_fill_their_frame(
    folder, tmp_path
):
    water = 0.96 * np.array([[0.0, 0, 0], [0.79, 0.61, 0], [-0.79, 0.61, 0]])
    bonds = np.array([[0, 1, 2], [1, 0, 0], [2, 0, 0]])
    page = molecule_viewer("OHH", np.stack([water] * 6), np.stack([bonds] * 6))
    folder.write("figures/turned.html", page.html)
    report = write_report(folder)
    check_report(report, tmp_path)
    broken = tmp_path / "broken.html"
    for wrong in ("image.classList", "Plotly.newPlot", "margin: 0; height: 100%"):
        assert wrong in report.read_text()
        broken.write_text(report.read_text().replace(wrong, "missing", 1))
        with pytest.raises(AssertionError):
            check_report(broken, tmp_path)
