import json

import numpy as np
import pytest

from browser import check_report, needs_browser
from equistein.plotting import molecule_viewer
from equistein.runs import (
    RunFolder,
    Words,
    write_environment,
    write_parts,
    write_report,
)
from equistein.runs._headlines import headlines, lower_is_better, rounded
from equistein.runs._metric_words import in_words

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
        "distance of energies (Wasserstein-2)", "0.120 ± 0.031", "equivariant",
    )  # fmt: skip
    for said in ("lower is better", "plain 0.5", "exact samples 0.1", "30 samples in"):
        assert said in first.beside
    assert (second.metric, second.entry) == ("accuracy of the classes", "plain")
    assert "higher is better" in second.beside


def test_headlines_call_entries_as_figures_do():
    first, second = headlines(METRICS, (), "data", {"plain": "plain EBM"})
    assert "plain EBM 0.5" in first.beside
    assert second.entry == "plain EBM"


@pytest.mark.parametrize(
    ("metric", "floor", "best", "said"),
    [
        ("states", {"states": 5.0}, "b", "best is nearest to data; beside it a 3"),
        ("states", {}, "a", "beside it b 4"),
        ("log_z_error", {}, "b", "best is 0; beside it a -2"),
    ],
)
def test_what_is_best_where_neither_less_nor_more_is(metric, floor, best, said):
    values = {"states": (3.0, 4.0, 9.0), "log_z_error": (-2.0, 1.0, 3.0)}[metric]
    metrics = {name: {metric: value} for name, value in zip("abc", values, strict=True)}
    (only,) = headlines(metrics | {"floor": floor}, [metric], "data")
    assert only.entry == best
    assert said in only.beside


def test_what_is_below_the_floor_is_all_as_good():
    values = {"a": 0.5, "b": 0.9, "c": 2.0}
    rows = {name: {"energy_w2": value} for name, value in values.items()}
    floor = {"energy_w2": 1.0}
    (only,) = headlines(rows | {"floor": floor}, ["energy_w2"], "exact samples")
    assert (only.entry, only.value) == ("a, b", "0.5 … 0.9")
    assert only.beside.startswith("all as good as the floor; lower is better; beside")
    assert "beside it c 2" in only.beside


def test_a_metric_that_some_seeds_never_reach_has_the_range_of_the_others(folder):
    numbers = {"steps": None, "steps_sd": 0.2, "steps_min": 1.0, "steps_max": 3.0}
    folder.write_json("metrics.json", {"a": numbers | {"steps_num_finite": 2}})
    text = write_report(folder, Words(title="t")).read_text()
    assert "1 … 3<br><small>in 2 seeds; no number in others" in text


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


def test_a_metric_is_said_in_words():
    assert in_words("ksd") == "kernel Stein discrepancy"
    assert in_words("likelihood_gap_250").endswith("(nats), 250")
    assert in_words("state_1") == "state 1"
    assert in_words("auroc_noise_log_density").startswith("chance to tell data")


def test_a_report_calls_entries_as_figures_do(folder):
    words = Words(
        title="t", labels={"plain": "plain EBM"}, notes={"plain": "Coordinates."}
    )
    event = {"name": "plain", "event": "warning", "text": "It drifts."}
    folder.write("history.jsonl", json.dumps(event) + "\n")
    text = write_report(folder, words).read_text()
    assert "<td>plain EBM<br><small>plain</small></td>" in text
    assert "<b>plain EBM</b>: Coordinates." in text
    assert "<b>plain EBM</b>: It drifts." in text
    assert '<th title="distance of energies (Wasserstein-2)">energy w2</th>' in text


def test_a_metric_of_its_own_is_shown_though_its_name_ends_as_a_spread(folder):
    folder.write_json("metrics.json", {"a": {"inner_sd": 0.5, "inner_sd_sd": 0.1}})
    text = write_report(folder, Words(title="t")).read_text()
    assert ">inner sd</th>" in text
    assert "inner sd sd" not in text


def test_frames_have_titles(folder):
    folder.write("figures/turned.html", "<p>Turn.</p>")
    assert (
        '<iframe title="turned" ' in write_report(folder, Words(title="t")).read_text()
    )


def test_an_interrupted_run_says_so_before_its_numbers(folder):
    write_parts(folder, ["a", "b", "c"], ["a"])
    text = write_report(folder, Words(title="t")).read_text()
    said = f"1 of 3 parts is done; `equistein resume {folder.path}` goes on."
    assert text.index(said) < text.index('class="card"')
    write_parts(folder, ["a", "b"], ["a", "b"])
    assert "resume" not in write_report(folder, Words(title="t")).read_text()


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
def test_molecules_to_turn_fill_their_frame(folder, tmp_path):
    water = 0.96 * np.array([[0.0, 0, 0], [0.79, 0.61, 0], [-0.79, 0.61, 0]])
    bonds = np.array([[0, 1, 2], [1, 0, 0], [2, 0, 0]])
    page = molecule_viewer("OHH", np.stack([water] * 6), np.stack([bonds] * 6))
    assert len(page.html) < 2.5e6
    folder.write("figures/turned.html", page.html)
    report = write_report(folder, Words(title="t", captions={"turned": "Turn."}))
    check_report(report, tmp_path)
    broken = tmp_path / "broken.html"
    for wrong in ("Plotly.newPlot", "#figure {height: 100%}"):
        assert wrong in report.read_text()
        broken.write_text(report.read_text().replace(wrong, "missing", 1))
        with pytest.raises(AssertionError):
            check_report(broken, tmp_path)
