import json
import shutil

import numpy as np
import pytest

import equistein.experiments.engine._run as running
from equistein.cli import main

pytestmark = pytest.mark.usefixtures("single_precision")

TINY_RUN = ["--preset", "smoke", "--num-seeds", "1", "--num-particles", "6"]
TINY_RUN += ["--num-steps", "8"]
TINY_FIT = "--group point-cloud --dim 2 --num-epochs 2 --sample-steps 20".split()
TINY_FIT += "--num-particles 8 --batch-size 16 --num-steps 3 --width 8".split()
TINY_FIT += "--depth 1 --num-samples 12 --ais-steps 10".split()


@pytest.fixture(scope="module")
def triangles(tmp_path_factory):
    rng = np.random.default_rng(0)
    corners = np.array([[0, 0], [1, 0], [0, 2]]) + 0.1 * rng.normal(size=(40, 3, 2))
    path = tmp_path_factory.mktemp("data") / "triangles.npy"
    np.save(path, corners.reshape(40, 6))
    return path


@pytest.fixture(scope="module")
def whole_run(tmp_path_factory, as_users):
    """The folder of a finished run."""
    out = tmp_path_factory.mktemp("runs") / "whole"
    with as_users():
        assert status("run", "two-circles", *TINY_RUN, "--out", out) == 0
    return out


@pytest.fixture(scope="module")
def whole_fit(tmp_path_factory, triangles, as_users):
    """The folder of a finished fit."""
    out = tmp_path_factory.mktemp("fits") / "whole"
    with as_users():
        assert status("fit", triangles, *TINY_FIT, "--out", out) == 0
    return out


def status(*arguments):
    try:
        return main([str(argument) for argument in arguments])
    except SystemExit as stop:
        return stop.code


def test_list_names_every_experiment(capsys):
    assert status("list") == 0
    printed = capsys.readouterr().out
    for name in ("c4-gaussians", "two-circles", "two-spheres", "sample-efficiency"):
        assert name in printed
    assert "robustness" in printed
    assert "dw4" in printed


def test_help_and_no_command_explain(capsys):
    assert status() == 0
    assert "equistein run" in capsys.readouterr().out
    assert status("run") == 0
    assert "two-circles" in capsys.readouterr().out


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
    lines = [
        json.loads(line) for line in (out / "history.jsonl").read_text().splitlines()
    ]
    assert [line["step"] for line in lines if line["name"] == "vanilla"][-1] == 8
    for name in ("samples.png", "samples.svg", "radii.png", "radii.svg"):
        assert (out / "figures" / name).stat().st_size > 1000
    report = (out / "report.html").read_text()
    assert "data:image/png;base64" in report
    assert "annealed" in report
    config = json.loads((out / "config.json").read_text())
    assert config["config"]["num_steps"] == 8
    assert "jax" in json.loads((out / "environment.json").read_text())["versions"]
    assert not list(out.rglob("*.part*"))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run", "two-circels"], "Did you mean two-circles"),
        (["run", "two-circles", "--preset", "slow"], "smoke, quick, paper"),
        (["run", "two-circles", "--num-wheels", "3"], "num-wheels"),
        (["run", "two-circles", "--num-steps", "-3"], "num_steps"),
        (["run", "two-circles", "--num-steps", "many"], "num-steps"),
        (["run", "two-circles", "--bandwidth", "0"], "bandwidth"),
        (["run", "two-circles", "--seed", "-1"], "seed"),
        (["walk"], "There is no command"),
        (["resume", "nowhere"], "not a run folder"),
        (["report", "nowhere"], "not a run folder"),
        (["sample", "nowhere", "--out", "new.npy"], "not a run folder"),
        (["fit", "nowhere.npy", "--group", "cyclic:4"], "no file"),
    ],
)
def test_a_mistake_exits_with_2_and_writes_nothing(
    arguments, said, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    assert status(*arguments) == 2
    caught = capsys.readouterr()
    assert said in caught.err + caught.out
    assert "Traceback" not in caught.err
    assert not list(tmp_path.iterdir())


def test_a_folder_in_use_is_left_alone(tmp_path, capsys):
    (tmp_path / "thesis.txt").write_text("mine")
    assert status("run", "two-circles", *TINY_RUN, "--out", tmp_path) == 2
    assert "not empty" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_an_unwritable_folder_is_an_error(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert status("run", "two-circles", *TINY_RUN, "--out", tmp_path / "file/x") == 2
    assert "Cannot write" in capsys.readouterr().err


def test_an_interrupted_run_keeps_its_parts_and_resumes_to_the_same(
    tmp_path, whole_run, monkeypatch, capsys
):
    whole, parts = whole_run, tmp_path / "parts"
    real = running.save_outcome

    def stop_after_the_second(folder, name, outcome):
        real(folder, name, outcome)
        if name == "invariant":
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(running, "save_outcome", stop_after_the_second)
        assert status("run", "two-circles", *TINY_RUN, "--out", parts) == 130
    assert f"equistein resume {parts}" in capsys.readouterr().err
    assert "vanilla" in json.loads((parts / "metrics.json").read_text())
    assert status("resume", parts) == 0
    assert "vanilla: done before" in capsys.readouterr().out
    assert (parts / "metrics.json").read_text() == (whole / "metrics.json").read_text()


def test_fit_then_sample(tmp_path, whole_fit):
    run, new = whole_fit, tmp_path / "new.npy"
    metrics = json.loads((run / "metrics.json").read_text())
    assert metrics["num_samples"] == {"model": 12}
    assert metrics["floor"]["w1_of_a_feature"] > 0
    judged = metrics["model"]
    assert judged["log_normalizer_error"] > 0
    assert np.isfinite(judged["held_out_log_likelihood"])
    assert 0 <= judged["auroc_by_log_density"] <= 1
    assert "held_out_accuracy" not in judged
    assert np.load(run / "samples.npz")["model"].shape == (12, 3, 2)
    assert (run / "report.html").stat().st_size > 10_000
    assert status("sample", run, "--num-samples", 5, "--out", new) == 0
    drawn = np.load(new, allow_pickle=False)
    assert drawn.shape == (5, 3, 2)
    assert np.isfinite(drawn).all()
    assert np.abs(drawn.mean(axis=1)).max() < 1e-5
    assert status("sample", run, "--num-samples", 5, "--out", new) == 2
    assert status("sample", run, "--num-samples", 0, "--out", tmp_path / "a.npy") == 2
    assert status("sample", run, "--out", tmp_path / "a.csv") == 2


def test_a_fit_stopped_after_an_epoch_resumes_to_the_same_bytes(
    tmp_path, triangles, whole_fit, monkeypatch, capsys
):
    import equistein.training._loop as training_loop

    whole, parts = whole_fit, tmp_path / "parts"
    real = training_loop.save_checkpoint

    def stop(*arguments):
        real(*arguments)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(training_loop, "save_checkpoint", stop)
        assert status("fit", triangles, *TINY_FIT, "--out", parts) == 130
    assert "equistein resume" in capsys.readouterr().err
    assert status("sample", parts, "--out", tmp_path / "a.npy") == 2
    assert status("resume", parts) == 0
    for name in ("checkpoint/model.eqx", "checkpoint/training.eqx"):
        assert (parts / name).read_bytes() == (whole / name).read_bytes()


def test_a_damaged_model_is_an_error(tmp_path, whole_fit, capsys):
    run = shutil.copytree(whole_fit, tmp_path / "run")
    model = run / "checkpoint/model.eqx"
    model.write_bytes(model.read_bytes()[:-100])
    assert status("sample", run, "--out", tmp_path / "a.npy") == 2
    assert "damaged" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--group", "point-cloud"], "--dim"),
        (["--group", "point-cloud", "--dim", "4"], "do not divide"),
        (["--group", "point-cloud", "--dim", "2", "--species", "C C"], "species"),
        (["--group", "so:3"], "acts on"),
        (["--group", "square"], "There is no group"),
        (["--group", "cyclic:0"], "positive integer"),
        (["--group", "trivial", "--num-epochs", "0"], "num_epochs"),
    ],
)
def test_a_fit_that_cannot_be_is_refused_before_it_begins(
    arguments, said, tmp_path, triangles, capsys
):
    out = tmp_path / "out"
    assert status("fit", triangles, *arguments, "--out", out) == 2
    caught = capsys.readouterr()
    assert said in caught.err + caught.out
    assert not out.exists()


def test_report_compares_runs(tmp_path, whole_run, capsys):
    runs = [tmp_path / "a", tmp_path / "b"]
    for run in runs:
        shutil.copytree(whole_run, run)
    capsys.readouterr()
    assert status("report", *runs) == 0
    printed = capsys.readouterr().out
    assert printed.count("annealed") == 2
