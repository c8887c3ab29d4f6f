import json

import numpy as np
import pytest

from equistein.runs import RunFolder, UserError


def test_a_new_folder_is_made_and_one_in_use_refused(tmp_path):
    folder = RunFolder.create(tmp_path / "a" / "run")
    assert list(folder.path.iterdir()) == []
    folder.write("thesis.txt", "mine")
    with pytest.raises(UserError, match="not empty"):
        RunFolder.create(folder.path)
    assert (folder.path / "thesis.txt").read_text() == "mine"


def test_what_a_run_killed_at_its_first_file_left_is_no_run(tmp_path):
    (tmp_path / ".config.json.part").write_text("{")
    RunFolder.create(tmp_path)


def test_a_folder_that_cannot_be_made_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="Cannot write"):
        RunFolder.create(tmp_path / "file" / "x")


def test_a_folder_without_a_config_is_no_run(tmp_path):
    with pytest.raises(UserError, match="is not a run folder"):
        RunFolder.open(tmp_path)


@pytest.mark.parametrize("content", ["", "{", "[1, 2]", '"text"', "\udcff"])
def test_a_damaged_config_is_told_with_its_path(content, tmp_path):
    path = tmp_path / "config.json"
    path.write_bytes(content.encode(errors="surrogateescape"))
    with pytest.raises(UserError, match="config.json"):
        RunFolder.open(tmp_path).read_config()


def test_a_config_is_found_again_with_its_version_aside(tmp_path):
    folder = RunFolder.create(tmp_path)
    folder.write_config({"command": "run", "seed": 3})
    assert folder.read_json("config.json")["version"] >= 2
    assert folder.read_config() == {"command": "run", "seed": 3}
    assert not list(tmp_path.rglob("*.part*"))


def test_words_of_a_report_in_an_old_config_are_left_behind(tmp_path):
    old = {"command": "fit", "words": {"title": "equistein fit: x.npy"}}
    (tmp_path / "config.json").write_text(json.dumps(old))
    assert RunFolder.open(tmp_path).read_config() == {"command": "fit"}


def test_settings_of_an_old_config_are_read_by_their_new_names(tmp_path):
    olds = [
        {"config": {"step": 0.1, "nuts_step": 3.0, "lengths": [1]}},
        {"version": 2, "config": {"step_size": 0.1, "nuts_step_size": 3.0}},
    ]
    for old in olds:
        (tmp_path / "config.json").write_text(json.dumps({"command": "run"} | old))
        found = RunFolder.open(tmp_path).read_config()["config"]
        bandwidths = {"bandwidths": [1]} if "lengths" in old["config"] else {}
        new = {"step_size": 0.1, "hamiltonian_step_size": 3.0} | bandwidths
        assert found == new


@pytest.mark.parametrize("version", [0, -1, 99, "two", None, True, 1.5])
def test_a_version_that_is_not_known_is_refused(version, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"version": version}))
    with pytest.raises(UserError, match="version"):
        RunFolder.open(tmp_path).read_config()


def test_json_never_holds_what_is_not_finite(tmp_path):
    with pytest.raises(ValueError, match="JSON"):
        RunFolder.create(tmp_path).write_json("metrics.json", {"w1": np.inf})
    assert list(tmp_path.iterdir()) == []


def test_arrays_are_found_again(tmp_path):
    folder = RunFolder.create(tmp_path)
    folder.write_arrays("a/b.npz", {"x": np.arange(3.0)})
    assert np.array_equal(folder.read_arrays("a/b.npz")["x"], np.arange(3.0))
    assert not list(tmp_path.rglob("*.part*"))
