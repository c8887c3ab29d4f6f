import numpy as np
import pytest

from browser import check_report, dom_of, needs_browser
from equistein.plotting import molecule_viewer
from equistein.runs import (
    RunFolder,
    Words,
    write_comparison,
    write_environment,
    write_report,
)
from equistein.runs._headlines import headlines, lower_is_better, rounded

METRICS = {
    "plain": {"energy_w2": 0.5, "accuracy": 0.7, "steps": 3.0},
    "equivariant": {
        "energy_w2": 0.12, "energy_w2_sd": 0.031, "energy_w2_min": 0.09,
        "energy_w2_max": 0.15, "accuracy": 0.6, "steps": 3.0,
    },
    "seeds": [0, 1, 2],
    "num_samples": {"plain": 10, "equivariant": 30},
    "floor": {"energy_w2": 0.1},
}  # fmt: skip


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
    assert rounded(value, spread) == text


@pytest.mark.parametrize(
    ("metric", "lower"),
    [
        ("energy_w2", True), ("w1_of_a_feature", True), ("ksd", True),
        ("held_out_accuracy", False), ("auroc_noise_log_density", False),
        ("validity", False), ("calibration_error", True), ("num_isomers", None),
        ("calibration_error_floor", None), ("log_normalizer_error", None),
    ],
)  # fmt: skip
def test_what_is_better_is_known_of_metrics_by_their_names(metric, lower):
    assert lower_is_better(metric) is lower


def test_the_best_comes_first_with_what_it_is_better_than():
    first, second = headlines(METRICS, (), "exact samples")
    assert (first.metric, first.value, first.entry) == (
        "energy w2", "0.120 ± 0.031", "equivariant",
    )  # fmt: skip
    for said in ("lower is better", "plain 0.5", "exact samples 0.1", "30 samples in"):
        assert said in first.beside
    assert (second.metric, second.entry) == ("accuracy", "plain")
    assert "higher is better" in second.beside


def test_chosen_headlines_are_taken_and_others_left():
    (only,) = headlines(METRICS, ("steps", "nothing"), "data")
    assert (only.metric, only.value) == ("steps", "3")
    assert headlines({"seeds": []}, (), "data") == []
    assert headlines({"model": {"accuracy": None}}, (), "data") == []


@pytest.fixture
def folder(tmp_path):
    """The folder of a run with a picture."""
    made = RunFolder.create(tmp_path / "run")
    made.write_config({"command": "run", "config": {"step": 0.1, "sizes": [1, 2]}})
    made.write_json("metrics.json", METRICS)
    write_environment(made)
    from matplotlib.figure import Figure

    figure = Figure(figsize=(20, 2))
    figure.subplots().plot([0, 1])
    (made.path / "figures").mkdir()
    figure.savefig(made.path / "figures" / "line.png")
    return made


def test_a_report_begins_with_the_answer_and_ends_with_the_settings(folder):
    text = write_report(
        folder, Words(title="t", captions={"line": "A line."})
    ).read_text()
    order = ["0.120 ± 0.031", "data:image/png", "<h2>Numbers", "config.step"]
    places = [text.index(part) for part in order]
    assert places == sorted(places)
    assert 'alt="line: A line."' in text
    assert '<td class="best">0.120 ± 0.031' in text
    assert "1, 2" in text
    assert "prefers-color-scheme:dark" in text


def test_runs_are_compared_in_one_table_with_the_settings_that_differ(folder, tmp_path):
    other = RunFolder.create(tmp_path / "other")
    other.write_config({"command": "run", "config": {"step": 0.2, "sizes": [1, 2]}})
    other.write_json("metrics.json", METRICS | {"new": {"energy_w2": 0.01}})
    page = tmp_path / "compared.html"
    write_comparison([folder, other], page)
    text = page.read_text()
    for said in ("run: plain", "other: plain", "other: new", "run: 0.1; other: 0.2"):
        assert said in text
    assert "config.sizes" not in text
    assert '<td class="best">0.01' in text


@pytest.mark.slow
@needs_browser
def test_a_report_is_shown_without_errors(folder, tmp_path):
    page = write_report(folder, Words(title="t", captions={"line": "A line."}))
    check_report(page, tmp_path)
    broken = tmp_path / "broken.html"
    broken.write_text(page.read_text().replace("image.classList", "image.missing"))
    with pytest.raises(AssertionError):
        check_report(broken, tmp_path)


@pytest.mark.slow
@needs_browser
def test_molecules_to_turn_are_drawn(tmp_path):
    water = 0.96 * np.array([[0.0, 0, 0], [0.79, 0.61, 0], [-0.79, 0.61, 0]])
    bonds = np.array([[0, 1, 2], [1, 0, 0], [2, 0, 0]])
    page = molecule_viewer("OHH", np.stack([water] * 2), np.stack([bonds] * 2))
    assert len(page.html) < 2.5e6
    (tmp_path / "page.html").write_text(f"<!doctype html><body>{page.html}")
    drawn = dom_of(tmp_path / "page.html")
    assert "js-plotly-plot" in drawn
    assert "Loading ..." not in drawn.rpartition("<script>")[0][-3000:]
