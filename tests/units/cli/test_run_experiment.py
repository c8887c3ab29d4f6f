import json
import shutil

import numpy as np
import pytest
from command_line import lines_of, status

import equistein.experiments.engine._run as running
from conftest import TINY_RUN


def test_run_writes_the_whole_run_folder(whole_run):
    out = whole_run
    metrics = json.loads((out / "metrics.json").read_text())
    assert {"vanilla", "invariant", "equivariant", "annealed"} <= set(metrics)
    assert metrics["seeds"] == [0]
    assert metrics["num_samples"]["vanilla"] == 6
    assert metrics["floor"]["w1_radius"] > 0
    assert isinstance(metrics["annealed"]["inner_weight"], float)
    samples = np.load(out / "samples.npz", allow_pickle=False)
    assert samples["annealed"].shape == (6, 2)
    lines = [line for line in lines_of(out) if line["name"] == "vanilla"]
    assert lines[-1]["step"] == 8
    for name in ("samples.png", "samples.svg", "radii.png", "radii.svg"):
        assert (out / "figures" / name).stat().st_size > 1000
    assert "vanilla" in (out / "figures/movement.html").read_text()
    assert "particles" not in lines[-1]
    report = (out / "report.html").read_text()
    assert "data:image/png;base64" in report
    assert "annealed" in report
    config = json.loads((out / "config.json").read_text())
    assert config["config"]["num_steps"] == 8
    assert config["preset"] == "smoke"
    assert not {"words", "captions", "notes"} & set(config)
    assert "jax" in json.loads((out / "environment.json").read_text())["versions"]
    assert not list(out.rglob("*.part*"))


def test_a_folder_in_use_is_left_alone(tmp_path, capsys):
    (tmp_path / "thesis.txt").write_text("mine")
    assert status("run", "two-circles", *TINY_RUN, "--out", tmp_path) == 2
    assert "not empty" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


@pytest.mark.parametrize("setting", ["num-particles", "num-seeds"])
def test_a_run_that_would_not_fit_into_memory_is_refused(setting, tmp_path, capsys):
    arguments = ["--preset", "smoke", f"--{setting}", 10**9, "--out", tmp_path / "out"]
    assert status("run", "c4-gaussians", *arguments) == 2
    assert "set EQUISTEIN_MAX_BYTES to" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def draw_nothing(patch):
    """Leave figures out, which take longer than what is run; they are tested above."""
    patch.setattr(running, "write_figures", lambda folder, figures: None)


@pytest.mark.slow
def test_an_interrupted_run_keeps_its_parts_and_resumes_to_the_same(
    tmp_path, whole_run, monkeypatch, capsys
):
    whole, parts = whole_run, tmp_path / "parts"
    real = running.save_outcome

    def stop_after_the_second(folder, name, outcome):
        real(folder, name, outcome)
        if name == "invariant":
            raise KeyboardInterrupt

    draw_nothing(monkeypatch)
    with monkeypatch.context() as patch:
        patch.setattr(running, "save_outcome", stop_after_the_second)
        assert status("run", "two-circles", *TINY_RUN, "--out", parts) == 130
    assert f"equistein resume {parts}" in capsys.readouterr().err
    assert "vanilla" in json.loads((parts / "metrics.json").read_text())
    assert status("resume", parts) == 0
    assert "vanilla: done before" in capsys.readouterr().out
    assert (parts / "metrics.json").read_text() == (whole / "metrics.json").read_text()


def test_a_run_of_before_is_resumed_and_reported(
    tmp_path, whole_run, monkeypatch, capsys
):
    draw_nothing(monkeypatch)
    old = shutil.copytree(whole_run, tmp_path / "old")
    described = json.loads((old / "config.json").read_text())
    del described["version"]
    (old / "config.json").write_text(json.dumps(described))
    assert status("resume", old) == 0
    assert "Finished before" in capsys.readouterr().out
    assert status("report", old) == 0
    (old / "report.html").unlink()
    assert status("resume", old) == 0
    assert "vanilla: done before" in capsys.readouterr().out


def test_report_compares_runs(tmp_path, whole_run, capsys):
    runs = [shutil.copytree(whole_run, tmp_path / name) for name in "ab"]
    for run in runs:
        (run / "report.html").unlink()
    assert status("report", *runs) == 0
    told = capsys.readouterr().out
    assert told.count("annealed") == 2
    page = tmp_path / "compared.html"
    assert str(page) in told
    assert "a: annealed" in page.read_text()
    page.write_text("mine")
    assert status("report", *runs) == 2
    assert "it is not overwritten: choose another --out" in capsys.readouterr().err
    assert page.read_text() == "mine"
    reports = [(run / "report.html").read_text() for run in (whole_run, *runs)]
    assert reports == reports[:1] * 3
