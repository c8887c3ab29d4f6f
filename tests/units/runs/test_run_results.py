import dataclasses
import importlib.metadata
import json

import numpy as np
import pytest

from equistein._serialization import load_arrays, save_arrays
from equistein.runs import (
    check_settings,
    FLOOR,
    load_part,
    Metric,
    Outcome,
    ReportText,
    RunFolder,
    save_part,
    summarize,
    UserError,
    write_environment,
    write_history,
    write_report,
    write_results,
)

ABOUT = {"w1": Metric("distance", "lower", "nats")}


def configure(folder, **settings):
    folder.write_json("config.json", {"command": "experiment", "seed": 0} | settings)
    return folder


@pytest.fixture
def folder(tmp_path):
    return configure(RunFolder.create(tmp_path))


def outcome(num=3):
    return Outcome(
        metrics={"w1": np.array([1.0, 3.0]), "weight": np.array([0.5, 0.5])},
        samples=np.arange(2.0 * num).reshape(num, 2),
        history={"step": np.array([[1, 5], [1, 5]]), "gap": np.ones((2, 2))},
        arrays={"states": np.array([0, 1, 1])},
        events=[{"event": "roll-back", "epoch": 3}],
    )


def lines_of(folder):
    def refuse(word):
        raise ValueError(f"JSON has no {word}")

    text = (folder.path / "history.jsonl").read_text()
    return [json.loads(line, parse_constant=refuse) for line in text.splitlines()]


def test_a_finished_stage_is_found_again(folder):
    assert load_part(folder, "vanilla") is None
    save_part(folder, "vanilla", outcome())
    again = load_part(folder, "vanilla")
    for field in dataclasses.fields(Outcome):
        first, second = getattr(outcome(), field.name), getattr(again, field.name)
        if field.name == "samples":
            assert np.array_equal(first, second)
        elif field.name == "events":
            assert first == second
        else:
            assert first.keys() == second.keys()
            assert all(np.array_equal(first[name], second[name]) for name in first)


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 no archive", b"noise", 300])
def test_a_damaged_stage_is_an_error_of_one_line(content, folder, tmp_path):
    save_part(folder, "vanilla", outcome())
    path = tmp_path / "checkpoint/vanilla.npz"
    truncated = isinstance(content, int)
    path.write_bytes(path.read_bytes()[:content] if truncated else content)
    with pytest.raises(UserError, match="vanilla.npz"):
        load_part(folder, "vanilla")


def test_a_stage_that_was_edited_or_has_no_header_is_refused(folder, tmp_path):
    save_part(folder, "vanilla", outcome())
    path = tmp_path / "checkpoint/vanilla.npz"
    with np.load(path) as stored:
        np.savez(path, **dict(stored) | {"samples": np.ones((3, 2))})
    with pytest.raises(UserError, match="vanilla.npz.*delete it and resume"):
        load_part(folder, "vanilla")
    for header in ({}, {"settings_sha256": 1, "events": "x"}):
        save_arrays(path, "finished part", header, {"samples": np.ones(2)})
        with pytest.raises(UserError):
            load_part(folder, "vanilla")


def test_results_are_the_contract_s_files(folder, tmp_path):
    write_results(folder, {"vanilla": outcome(), FLOOR: outcome(5)}, [4, 5], ABOUT)
    metrics = json.loads((tmp_path / "metrics.json").read_text())
    spread = {"w1": 2.0, "w1_sd": 2**0.5, "w1_min": 1.0, "w1_max": 3.0}
    assert spread.items() <= metrics["entries"]["vanilla"].items()
    assert metrics["seeds"] == [4, 5]
    assert metrics["num_samples"] == {"vanilla": 3}
    assert metrics["floor"]["w1"] == 2.0
    assert metrics["about"]["w1"] == {
        "label": "distance", "better": "lower", "unit": "nats",
    }  # fmt: skip
    lines = lines_of(folder)
    assert lines[1] == {"name": "vanilla", "seed_index": 0, "step": 5, "gap": 1.0}
    assert len(lines) == 5
    assert lines[4] == {"name": "vanilla", "event": "roll-back", "epoch": 3}
    _, samples = load_arrays(tmp_path / "samples.npz", "samples of a run", "")
    assert {name: x.shape for name, x in samples.items()} == {"vanilla": (3, 2)}


def test_a_history_holds_null_where_a_value_is_infinite(folder):
    diverged = dataclasses.replace(
        outcome(),
        history={
            "step": np.array([[1, 2]]), "loss": np.array([[np.inf, 1.0]]),
            "seen": np.array([[np.nan, 2.0]]),
        },
        events=[{"event": "roll-back", "energy": float("-inf")}],
    )  # fmt: skip
    write_history(folder, {"model": diverged})
    assert lines_of(folder) == [
        {"name": "model", "seed_index": 0, "step": 1, "loss": None},
        {"name": "model", "seed_index": 0, "step": 2, "loss": 1.0, "seen": 2.0},
        {"name": "model", "event": "roll-back", "energy": None},
    ]


def test_what_is_not_finite_is_null():
    found = summarize({"w1": np.array([2.0, np.inf, 4.0])})
    spread = {"w1_sd": 2**0.5, "w1_min": 2.0, "w1_max": 4.0}
    assert found.pop("w1") is None
    assert found.pop("w1_num_finite") == 2
    assert found == pytest.approx(spread)
    assert summarize({"w1": np.array([np.nan])}) == {"w1": None}
    assert summarize({"w1": np.array([2.0])}) == {"w1": 2.0}  # one seed has no spread


def test_a_report_is_made_of_the_folder(folder, monkeypatch):
    monkeypatch.setattr("sys.argv", ["/x/mine/__main__.py", "a b", "--seed=1"])
    configure(folder, experiment="<mine>")
    write_environment(folder)
    folder.write("figures/rings.png", b"no picture")
    text = ReportText(
        title="Two & two", lead="Rings.", notes={"vanilla": "Plain.", "other": "No."},
        captions={"rings": "Both rings."}, floor="data",
    )  # fmt: skip
    with pytest.raises(UserError, match="metrics.json"):
        write_report(folder, text)
    write_results(folder, {"vanilla": outcome(), FLOOR: outcome(5)}, [4, 5], ABOUT)
    page = write_report(folder).read_text()
    for said in ("Two &amp; two", "Rings.", "Plain.", "Both rings.", "floor: data",
                 "Mean over 2 seeds", "2.0 ± 1.4", "&lt;mine&gt;",
                 "python -m mine &#39;a b&#39; --seed=1"):  # fmt: skip
        assert said in page
    assert "No." not in page


def test_a_resumed_run_keeps_the_environment_it_started_in(folder, tmp_path):
    write_environment(folder)
    before = (tmp_path / "environment.json").read_text()
    versions = json.loads(before)["versions"]
    installed = {d.metadata["Name"].lower() for d in importlib.metadata.distributions()}
    wanted = {"equistein", "jax", "scipy", "blackjax", "numpyro", "rdkit"} & installed
    assert {"equistein", "jax"} <= wanted <= set(versions)
    write_environment(folder)
    assert (tmp_path / "environment.json").read_text() == before


def test_a_stage_of_other_settings_is_told(folder):
    save_part(folder, "vanilla", outcome())
    configure(folder, seed=1)
    with pytest.raises(UserError, match="was made with other settings"):
        load_part(folder, "vanilla")
    configure(folder)
    assert load_part(folder, "vanilla") is not None


def test_settings_that_were_changed_are_told(folder):
    """Where the data are may change, for their checksum is kept."""
    configure(folder, data="/here")
    check_settings(folder)  # nothing has begun
    write_environment(folder)
    check_settings(folder)
    configure(folder, data="/there")
    check_settings(folder)
    configure(folder, seed=1, data="/here")
    with pytest.raises(UserError, match="was changed after the run began"):
        check_settings(folder)


def test_what_would_not_fit_into_memory_is_not_read(folder, monkeypatch):
    many = dataclasses.replace(outcome(), samples=np.zeros((50_000, 2)))
    save_part(folder, "vanilla", many)
    folder.write_json("metrics.json", {"w1": [1.0] * 10_000})
    monkeypatch.setenv("EQUISTEIN_MAX_BYTES", "500000")
    for read in (
        lambda: load_part(folder, "vanilla"),
        lambda: folder.read_json("metrics.json"),
    ):
        with pytest.raises(UserError, match="EQUISTEIN_MAX_BYTES"):
            read()
