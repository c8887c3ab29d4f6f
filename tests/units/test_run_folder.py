import dataclasses
import json

import numpy as np
import pytest

from equistein.cli import main
from equistein.cli._folder import as_json, RunFolder, summarize, UserError
from equistein.experiments import EXPERIMENTS, FLOOR, Outcome


def outcome(num=3):
    return Outcome(
        metrics={"w1": np.array([1.0, 3.0]), "weight": np.array([0.5, 0.5])},
        samples=np.arange(2.0 * num).reshape(num, 2),
        history={"step": np.array([[1, 5], [1, 5]]), "gap": np.ones((2, 2))},
        arrays={"states": np.array([0, 1, 1])},
        events=[{"event": "roll-back", "epoch": 3}],
    )


def test_a_finished_stage_is_found_again(tmp_path):
    folder = RunFolder.create(tmp_path / "a" / "run")
    assert folder.load_outcome("vanilla") is None
    folder.save_outcome("vanilla", outcome())
    again = folder.load_outcome("vanilla")
    for field in dataclasses.fields(Outcome):
        first, second = getattr(outcome(), field.name), getattr(again, field.name)
        if field.name == "samples":
            assert np.array_equal(first, second)
        elif field.name == "events":
            assert first == second
        else:
            assert first.keys() == second.keys()
            assert all(np.array_equal(first[name], second[name]) for name in first)
    assert not list(folder.path.rglob("*.part*"))


def test_results_are_the_contract_s_files(tmp_path):
    folder = RunFolder.create(tmp_path)
    folder.write_results({"vanilla": outcome(), FLOOR: outcome(5)}, [4, 5])
    metrics = json.loads((tmp_path / "metrics.json").read_text())
    spread = {"w1": 2.0, "w1_sd": 2**0.5, "w1_min": 1.0, "w1_max": 3.0}
    assert spread.items() <= metrics["vanilla"].items()
    assert metrics["seeds"] == [4, 5]
    assert metrics["num_samples"] == {"vanilla": 3}
    assert metrics["floor"]["w1"] == 2.0
    assert set(metrics) == {"vanilla", "seeds", "num_samples", "floor"}
    lines = (tmp_path / "history.jsonl").read_text().splitlines()
    assert json.loads(lines[1]) == {
        "name": "vanilla", "seed_index": 0, "step": 5, "gap": 1.0,
    }  # fmt: skip
    assert len(lines) == 5
    assert json.loads(lines[4]) == {"name": "vanilla", "event": "roll-back", "epoch": 3}
    with np.load(tmp_path / "samples.npz", allow_pickle=False) as samples:
        assert {name: samples[name].shape for name in samples} == {"vanilla": (3, 2)}


def test_what_is_not_finite_is_null():
    found = summarize({"w1": np.array([2.0, np.inf])})
    assert found == {"w1": None, "w1_sd": None, "w1_min": 2.0, "w1_max": None}
    assert summarize({"w1": np.array([np.nan])}) == {"w1": None}


def test_one_seed_has_no_spread():
    assert summarize({"w1": np.array([2.0])}) == {"w1": 2.0}


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 no archive", b"noise"])
def test_a_damaged_stage_is_an_error_of_one_line(content, tmp_path):
    folder = RunFolder.create(tmp_path)
    folder.save_outcome("vanilla", outcome())
    (tmp_path / "checkpoint/vanilla.npz").write_bytes(content)
    with pytest.raises(UserError, match="Cannot read .*vanilla.npz"):
        folder.load_outcome("vanilla")


def test_a_truncated_stage_is_an_error_of_one_line(tmp_path):
    folder = RunFolder.create(tmp_path)
    folder.save_outcome("vanilla", outcome())
    path = tmp_path / "checkpoint/vanilla.npz"
    path.write_bytes(path.read_bytes()[:300])
    with pytest.raises(UserError, match="Cannot read .*vanilla.npz"):
        folder.load_outcome("vanilla")


@pytest.mark.parametrize("content", ["", "{", "[1, 2]", '"text"', "\udcff"])
def test_a_damaged_description_is_an_error_of_one_line(content, tmp_path, capsys):
    path = tmp_path / "config.json"
    path.write_bytes(content.encode(errors="surrogateescape"))
    assert main(["resume", str(tmp_path)]) == 2
    assert "config.json" in capsys.readouterr().err


def described(**changes):
    smoke = EXPERIMENTS["two-circles"].presets["smoke"]
    values = {
        "command": "run",
        "experiment": "two-circles",
        "preset": "smoke",
        "seed": 0,
        "config": as_json(smoke),
    }
    return values | changes


@pytest.mark.parametrize(
    "wrong",
    [
        {"command": "walk"},
        {"command": None},
        {"experiment": "two-squares"},
        {"experiment": 3},
        {"seed": "one"},
        {"seed": -1},
        {"config": {}},
        {"config": None},
        {"config": as_json(EXPERIMENTS["c4-gaussians"].presets["smoke"])},
        {"config": described()["config"] | {"num_steps": "many"}},
        {"config": described()["config"] | {"num_steps": 2.5}},
        {"config": described()["config"] | {"num_steps": -1}},
        {"config": described()["config"] | {"radii": 4.0}},
    ],
)
def test_a_description_that_was_changed_by_hand_is_refused(
    wrong, tmp_path, capsys, unchecked
):
    (tmp_path / "config.json").write_text(json.dumps(described(**wrong)))
    assert main(["resume", str(tmp_path)]) == 2
    caught = capsys.readouterr()
    assert caught.err.startswith("equistein: ")
    assert not list(tmp_path.rglob("*.npz"))


def test_every_preset_of_every_experiment_survives_its_json():
    from equistein.cli._run import config_from_json

    for experiment in EXPERIMENTS.values():
        assert {"smoke", "quick", "paper"} <= set(experiment.presets)
        for config in experiment.presets.values():
            values = json.loads(json.dumps(as_json(config)))
            assert config_from_json(config, values) == config
