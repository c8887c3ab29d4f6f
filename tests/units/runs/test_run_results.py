import dataclasses
import importlib.metadata
import io
import json

import numpy as np
import pytest

from equistein.runs import (
    arrays_of,
    check_settings,
    FLOOR,
    joined,
    load_outcome,
    Outcome,
    RunFolder,
    save_outcome,
    summarize,
    UserError,
    Words,
    write_environment,
    write_history,
    write_report,
    write_results,
)


def configured(path, **settings):
    folder = RunFolder.create(path)
    folder.write_config({"command": "run", "seed": 0} | settings)
    return folder


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


def test_a_finished_stage_is_found_again(tmp_path):
    folder = configured(tmp_path)
    assert load_outcome(folder, "vanilla") is None
    save_outcome(folder, "vanilla", outcome())
    again = load_outcome(folder, "vanilla")
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
def test_a_damaged_stage_is_an_error_of_one_line(content, tmp_path):
    folder = configured(tmp_path)
    save_outcome(folder, "vanilla", outcome())
    path = tmp_path / "checkpoint/vanilla.npz"
    truncated = isinstance(content, int)
    path.write_bytes(path.read_bytes()[:content] if truncated else content)
    with pytest.raises(UserError, match="Cannot read .*vanilla.npz"):
        load_outcome(folder, "vanilla")


def test_results_are_the_contract_s_files(tmp_path):
    folder = RunFolder.create(tmp_path)
    write_results(folder, {"vanilla": outcome(), FLOOR: outcome(5)}, [4, 5])
    metrics = json.loads((tmp_path / "metrics.json").read_text())
    spread = {"w1": 2.0, "w1_sd": 2**0.5, "w1_min": 1.0, "w1_max": 3.0}
    assert spread.items() <= metrics["vanilla"].items()
    assert metrics["seeds"] == [4, 5]
    assert metrics["num_samples"] == {"vanilla": 3}
    assert metrics["floor"]["w1"] == 2.0
    assert set(metrics) == {"vanilla", "seeds", "num_samples", "floor"}
    lines = lines_of(folder)
    assert lines[1] == {"name": "vanilla", "seed_index": 0, "step": 5, "gap": 1.0}
    assert len(lines) == 5
    assert lines[4] == {"name": "vanilla", "event": "roll-back", "epoch": 3}
    with np.load(tmp_path / "samples.npz", allow_pickle=False) as samples:
        assert {name: samples[name].shape for name in samples} == {"vanilla": (3, 2)}


def test_a_history_holds_null_where_a_value_is_infinite(tmp_path):
    folder = RunFolder.create(tmp_path)
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


def test_one_seed_has_no_spread():
    assert summarize({"w1": np.array([2.0])}) == {"w1": 2.0}


def test_the_seeds_of_a_model_are_joined():
    both = joined({"plain@0": outcome(), "plain@1": outcome(2), FLOOR: outcome()})
    assert set(both) == {"plain", FLOOR}
    assert both["plain"].metrics["w1"].tolist() == [1.0, 3.0, 1.0, 3.0]
    assert both["plain"].samples.shape == (5, 2)
    assert [event["seed_index"] for event in both["plain"].events] == [0, 1]


def test_a_report_is_made_of_the_folder_and_words(tmp_path):
    folder = RunFolder.create(tmp_path)
    folder.write_config({"command": "run", "experiment": "<mine>"})
    write_environment(folder)
    write_results(folder, {"vanilla": outcome(), FLOOR: outcome(5)}, [4, 5])
    folder.write("figures/rings.png", b"no picture")
    words = Words(
        title="Two & two", lead="Rings.", notes={"vanilla": "Plain.", "other": "No."},
        captions={"rings": "Both rings."}, floor="data",
    )  # fmt: skip
    text = write_report(folder, words).read_text()
    for said in ("Two &amp; two", "Rings.", "Plain.", "Both rings.", "floor: data",
                 "Mean over 2 seeds", "2.0 ± 1.4", "&lt;mine&gt;"):  # fmt: skip
        assert said in text
    assert "No." not in text


def test_a_report_without_results_is_refused(tmp_path):
    folder = RunFolder.create(tmp_path)
    folder.write_config({"command": "run"})
    with pytest.raises(UserError, match="metrics.json"):
        write_report(folder, Words(title="nothing"))


def test_a_resumed_run_keeps_the_environment_it_started_in(tmp_path):
    folder = configured(tmp_path)
    write_environment(folder)
    before = (tmp_path / "environment.json").read_text()
    versions = json.loads(before)["versions"]
    installed = {d.metadata["Name"].lower() for d in importlib.metadata.distributions()}
    wanted = {"equistein", "jax", "scipy", "blackjax", "numpyro", "rdkit"} & installed
    assert {"equistein", "jax"} <= wanted <= set(versions)
    write_environment(folder)
    assert (tmp_path / "environment.json").read_text() == before


def test_a_stage_of_other_settings_is_told(tmp_path):
    folder = configured(tmp_path)
    save_outcome(folder, "vanilla", outcome())
    folder.write_config({"command": "run", "seed": 1})
    with pytest.raises(UserError, match="was made with other settings"):
        load_outcome(folder, "vanilla")
    folder.write_config({"seed": 0, "command": "run"})  # in another order
    assert load_outcome(folder, "vanilla") is not None


def test_settings_that_were_changed_are_told(tmp_path):
    """Where the data are may change, for their checksum is kept."""
    folder = configured(tmp_path, data="/here")
    check_settings(folder)  # nothing has begun
    write_environment(folder)
    check_settings(folder)
    folder.write_config({"command": "run", "seed": 0, "data": "/there"})
    check_settings(folder)
    folder.write_config({"command": "run", "seed": 1, "data": "/here"})
    with pytest.raises(UserError, match="was changed after the run began"):
        check_settings(folder)


def test_a_stage_that_was_edited_is_told(tmp_path):
    folder = configured(tmp_path)
    save_outcome(folder, "vanilla", outcome())
    parts = folder.read_arrays("checkpoint/vanilla.npz")
    folder.write_arrays("checkpoint/vanilla.npz", parts | {"samples": np.ones((3, 2))})
    with pytest.raises(UserError, match="was changed or damaged"):
        load_outcome(folder, "vanilla")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("samples", np.array(1.0)),
        ("samples", np.array(["a", "b"])),
        ("metrics:w1", np.ones((2, 2))),
        ("metrics:w1", np.ones(0)),
        ("history:gap", np.ones(3)),
        ("history:gap", np.ones((2, 3))),
        ("arrays:states", np.array([1 + 2j])),
        ("events", np.array("{}")),
        ("events", np.array("[1]")),
        ("events", np.array("[" * 5_000)),
        ("odd:thing", np.ones(2)),
    ],
)
def test_a_stage_of_wrong_shapes_is_refused(name, value, tmp_path):
    """One of before there were checksums."""
    folder = configured(tmp_path)
    folder.write_arrays("checkpoint/vanilla.npz", arrays_of(outcome()))
    assert load_outcome(folder, "vanilla") is not None
    parts = arrays_of(outcome()) | {name: value}
    folder.write_arrays("checkpoint/vanilla.npz", parts)
    with pytest.raises(UserError, match="(?s)no finished part .*delete it and resume"):
        load_outcome(folder, "vanilla")


def test_what_would_not_fit_into_memory_is_not_read(tmp_path, monkeypatch):
    folder = configured(tmp_path)
    packed = io.BytesIO()
    np.savez_compressed(packed, samples=np.zeros((50_000, 2)))
    folder.write("checkpoint/vanilla.npz", packed.getvalue())
    folder.write_json("metrics.json", {"w1": [1.0] * 10_000})
    folder.write("history.jsonl", "{}\n" + "[" * 20_000)
    assert len(packed.getvalue()) < 10_000
    monkeypatch.setenv("EQUISTEIN_MAX_BYTES", "500000")
    with pytest.raises(UserError, match="set EQUISTEIN_MAX_BYTES to 800128 or more"):
        folder.read_arrays("checkpoint/vanilla.npz")
    with pytest.raises(UserError, match="metrics.json would need about 2.1"):
        folder.read_json("metrics.json")
    lines = folder.read_lines("history.jsonl")
    assert next(lines) == "{}\n"
    with pytest.raises(UserError, match="line of more than 15.26 KiB"):
        next(lines)
