import json
import shutil

import numpy as np
import pytest
from command_line import lines_of, status

import equistein.training._loop as loop


def test_a_cloud_and_its_classes_are_learned(whole_fit):
    described = json.loads((whole_fit / "config.json").read_text())
    assert described["shape"] == [3, 2]
    assert not {"words", "captions", "notes"} & set(described)
    numbers = json.loads((whole_fit / "metrics.json").read_text())
    assert numbers["num_samples"] == {"model": 6}
    assert numbers["floor"]["energy_distance_of_features"] != 0
    metrics = numbers["entries"]["model"]
    for name in ("held_out_accuracy", "calibration_error"):
        assert 0 <= metrics[name] <= 1
    assert metrics["log_normalizer_error"] > 0
    assert np.isfinite(metrics["held_out_log_likelihood"])
    assert np.load(whole_fit / "samples.npz")["model"].shape == (6, 3, 2)
    lines = [line for line in lines_of(whole_fit) if "event" not in line]
    assert [line["step"] for line in lines] == [1, 2]
    assert all(np.isfinite(line["cross_entropy"]) for line in lines)
    assert all(0 <= line["accuracy"] <= 1 for line in lines)


def test_the_report_of_a_fit_says_what_was_learned(whole_fit):
    report = (whole_fit / "report.html").read_text()
    assert "triangles.npz" in report
    assert "learned from 36 of 40 points of shape (3, 2)" in report
    assert "The gap that contrastive divergence closes" in report
    before = (whole_fit / "report.html").read_bytes()
    assert status("report", whole_fit) == 0
    assert (whole_fit / "report.html").read_bytes() == before


def test_a_file_in_the_way_is_kept_and_a_damaged_model_is_an_error(
    whole_fit, tmp_path, capsys
):
    new, run = tmp_path / "new.npz", shutil.copytree(whole_fit, tmp_path / "run")
    new.write_text("mine")
    assert status("sample", run, "--out", new) == 2
    assert "there already" in capsys.readouterr().err
    assert new.read_text() == "mine"
    model = run / "checkpoint/model.eqx"
    model.write_bytes(model.read_bytes()[:-100])
    assert status("sample", run, "--out", tmp_path / "a.npy") == 2
    assert "damaged" in capsys.readouterr().err


def test_points_of_one_class_are_drawn(whole_fit, tmp_path):
    drawn = {}
    for label in (0, 1):
        new = tmp_path / f"new{label}.npz"
        arguments = ["--label", label, "--num-samples", 7, "--out", new]
        assert status("sample", whole_fit, *arguments) == 0
        with np.load(new, allow_pickle=False) as stored:
            assert set(stored) == {"x", "y"}
            assert np.array_equal(stored["y"], np.full(7, label))
            drawn[label] = stored["x"]
    assert drawn[0].shape == (7, 3, 2)
    assert np.all(np.isfinite(drawn[0]))
    assert np.abs(drawn[0].mean(axis=1)).max() < 1e-5
    assert not np.array_equal(drawn[0], drawn[1])


@pytest.mark.slow
def test_points_of_all_classes_are_drawn_without_a_label(whole_fit, tmp_path):
    new = tmp_path / "new.npz"
    assert status("sample", whole_fit, "--num-samples", 7, "--out", new) == 0
    with np.load(new, allow_pickle=False) as stored:
        assert set(stored) == {"x"}


@pytest.mark.slow
def test_a_fit_stopped_after_an_epoch_resumes_to_the_same_bytes(
    tmp_path, begin_fit, whole_fit, monkeypatch, capsys
):
    parts = tmp_path / "parts"
    real = loop.save_checkpoint

    def stop(*arguments):
        real(*arguments)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(loop, "save_checkpoint", stop)
        assert status(*begin_fit, parts) == 130
    assert "equistein resume" in capsys.readouterr().err
    assert status("sample", parts, "--out", tmp_path / "a.npy") == 2
    assert "not finished" in capsys.readouterr().err
    assert status("resume", parts) == 0
    for name in ("checkpoint/model.eqx", "checkpoint/training.npz"):
        assert (parts / name).read_bytes() == (whole_fit / name).read_bytes()


@pytest.mark.slow
def test_a_file_that_stays_on_disk_is_fitted_and_judged(begin_fit, tmp_path, capsys):
    out = tmp_path / "run"
    assert status(*begin_fit[:-1], "--stream", "--out", out) == 0
    metrics = json.loads((out / "metrics.json").read_text())["entries"]["model"]
    assert np.isfinite(metrics["held_out_log_likelihood"])
    assert status("sample", out, "--label", 1, "--out", tmp_path / "new.npz") == 0
    images = ["fit", tmp_path, "--group", "image-rotations", "--stream"]
    assert status(*images) == 2
    assert "--stream is for .npy and .npz" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--label", "2", "--out", "new.npz"], "from 0 to 1"),
        (["--label", "-1", "--out", "new.npz"], "from 0 to 1"),
        (["--label", "one", "--out", "new.npz"], "--label"),
        (["--out", "nowhere/new.npz"], "no folder"),
        (["--num-samples", "0", "--out", "new.npz"], "at least 1"),
        (["--seed", "-1", "--out", "new.npz"], "from 0 to"),
    ],
)
def test_a_mistake_in_sampling_writes_nothing(
    arguments, said, whole_fit, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    assert status("sample", whole_fit, *arguments) == 2
    caught = capsys.readouterr()
    assert said in caught.err + caught.out
    assert "Traceback" not in caught.err
    assert not list(tmp_path.iterdir())


def test_quiet_prints_the_answer_alone_and_json_one_object(whole_fit, capsys):
    assert status("report", whole_fit, "--quiet") == 0
    caught = capsys.readouterr()
    assert (caught.out, caught.err) == (f"{whole_fit / 'report.html'}\n", "")
    assert status("--json", "resume", whole_fit) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["status"] == 0
    assert found["folder"] == str(whole_fit)
    assert found["metrics"] == json.loads((whole_fit / "metrics.json").read_text())
