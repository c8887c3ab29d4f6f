import csv
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from command_line import status

from equistein.cli import _sweep, _workers
from equistein.runs import Member, members, RunFolder, UserError, write_sweep_results

TINY_RUN = "--preset smoke --num-particles 6 --num-steps 8".split()
SWEEP = ["sweep", "two-circles", *TINY_RUN, "--over", "seed=3..4"]


def test_members_are_all_combinations():
    found = members(["seed=0..2", "--step-size=.1,1e-2"])
    assert [member.values for member in found[:3]] == [
        {"seed": "0", "step_size": ".1"},
        {"seed": "0", "step_size": "1e-2"},
        {"seed": "1", "step_size": ".1"},
    ]
    assert len(found) == 6
    assert found[0].name == "seed=0 step_size=.1"
    assert found[0].setting == "step_size=.1"
    assert [m.values["seed"] for m in members(["seed=7,0..1"])] == ["7", "0", "1"]


@pytest.mark.parametrize(
    ("over", "message"),
    [
        ([], "needs what it is over"),
        (["seed"], "needs a field and its values"),
        (["=1,2"], "needs a field and its values"),
        (["seed=1,,2"], "needs a field and its values"),
        (["seed=1,2,1"], "all different"),
        (["seed=5..1"], "needs a field and its values"),
        (["seed=0..10000000"], "at most 100000 runs"),
        (["seed=1", "seed=2"], "names seed twice"),
        (["seed=0..999", "step_size=0..999"], "at most 100000 runs"),
    ],
)
def test_what_cannot_be_swept_is_refused(over, message):
    with pytest.raises(UserError, match=message):
        members(over)


def test_runs_that_differ_in_the_seed_are_pooled(tmp_path):
    folder = RunFolder.create(tmp_path)
    results = {
        f"{seed}-{size}": (
            Member({"seed": str(seed), "size": size}),
            {
                "svgd": {"error": [seed + float(size)], "ksd": [None]},
                "exact": {"error": [0.5]},
            },
        )
        for seed in range(3)
        for size in ("1", "2")
    }
    write_sweep_results(folder, results)
    found = folder.read_json("metrics.json")
    assert found["svgd size=1"]["error"] == pytest.approx(2.0)
    assert found["svgd size=1"]["error_sd"] == pytest.approx(1.0)
    assert found["svgd size=2"]["error_min"] == pytest.approx(2.0)
    assert found["svgd size=1"]["ksd"] is None
    assert found["seeds"] == [0, 1, 2]
    rows = list(csv.DictReader((tmp_path / "table.csv").read_text().splitlines()))
    assert len(rows) == 12
    assert rows[0] == {
        "run": "0-1", "seed": "0", "size": "1", "model": "svgd", "seed_index": "0",
        "error": "1.0", "ksd": "",
    }  # fmt: skip
    assert (tmp_path / "figures" / "error.png").is_file()


def in_this_process(arguments, cores, log, running):
    """Stand for a run in a process of its own."""
    assert cores
    return status(*arguments)


@pytest.mark.slow
def test_a_sweep_is_runs_with_one_table_and_report(tmp_path, monkeypatch, capsys):
    ran = []

    def first_fails(arguments, cores, log, running):
        ran.append(arguments)
        return 1 if len(ran) == 1 else in_this_process(arguments, cores, log, running)

    monkeypatch.setattr(_workers, "_run_child", first_fails)
    out = tmp_path / "sweep"
    assert status(*SWEEP, "--workers", "1", "--out", out) == 1
    assert "failed; it says why in" in capsys.readouterr().err
    assert len(RunFolder.open(out).read_json("finished.json")["finished"]) == 1
    monkeypatch.setattr(_workers, "_run_child", in_this_process)
    assert status("resume", out) == 0
    assert "2 runs, 1 of them done before" in capsys.readouterr().out
    described = RunFolder.open(out / "members" / "0001-seed=4").read_config()
    assert (described["seed"], described["config"]["num_seeds"]) == (4, 1)
    metrics = json.loads((out / "metrics.json").read_text())
    assert metrics["seeds"] == [3, 4]
    both = [
        json.loads((member / "metrics.json").read_text())["vanilla"]["ksd"]
        for member in sorted((out / "members").iterdir())
    ]
    assert metrics["vanilla"]["ksd"] == pytest.approx(np.mean(both))
    assert "equistein sweep: two-circles" in (out / "report.html").read_text()
    assert status("report", out) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["sweep", "--over", "seed=0..1"], "needs an experiment or `fit` first"),
        (["sweep", "nothing", "--over", "seed=0"], "There is no experiment 'nothing'"),
        ([*SWEEP, "--over", "bandwidth=-1,2"], "`bandwidth` must be a finite number"),
        ([*SWEEP, "--over", "colour=1,2"], "--colour=1"),
        ([*SWEEP, "--workers", "0"], "--workers must be at least 1"),
        (
            ["sweep", "fit", "none.npy", "--group", "trivial", "--over", "foo=1"],
            "--foo",
        ),
    ],
)
def test_a_sweep_that_does_not_do_writes_nothing(arguments, message, tmp_path, capsys):
    assert status(*arguments, "--out", tmp_path / "out") == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_arguments_of_the_sweep_are_told_from_those_of_its_runs():
    own, rest = _sweep.own_arguments(
        "dw4 --over seed=0..3 --preset smoke --over=width=1,2 --cluster slurm "
        "--cluster-options a=1 b=2 --workers=3 --num-seeds 1".split()
    )
    assert rest == ("dw4", "--preset", "smoke", "--num-seeds", "1")
    assert own == (
        "--over seed=0..3 --over=width=1,2 --cluster slurm --cluster-options a=1 b=2 "
        "--workers=3".split()
    )


@pytest.mark.slow
def test_a_killed_sweep_goes_on(tmp_path):
    out = tmp_path / "sweep"
    begin = [sys.executable, "-c", "from equistein.cli import main; main()", *SWEEP]
    sweep = subprocess.Popen([*begin, "--workers", "1", "--out", str(out)])
    finished = out / "finished.json"
    try:
        for _ in range(1_200):
            if finished.exists() or sweep.poll() is not None:
                break
            time.sleep(0.1)
        assert finished.exists()
        time.sleep(2.0)  # the second run has begun
        sweep.send_signal(signal.SIGKILL)
    finally:
        sweep.kill()
        sweep.wait()
    time.sleep(1.5)
    assert not _children_of(out)
    assert status("resume", out) == 0
    names = json.loads(finished.read_text())["finished"]
    assert names == ["0000-seed=3", "0001-seed=4"]
    assert json.loads((out / "metrics.json").read_text())["seeds"] == [3, 4]


def _children_of(folder):
    """Return the processes whose arguments name a folder."""
    found = []
    for place in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = place.read_bytes().decode(errors="replace")
        except OSError:
            continue
        if str(folder) in words and int(place.parent.name) != os.getpid():
            found.append(words)
    return found


def test_a_dry_run_tells_the_runs_and_writes_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    arguments = ["--preset", "smoke", "--over", "seed=0..1", "--over", "num_steps=5,6"]
    assert status("sweep", "two-circles", "--dry-run", *arguments) == 0
    assert "4 runs" in capsys.readouterr().out
    over = ["--over", "seed=0..9", "--over", "num_steps=25000,50000", "--workers", "1"]
    assert status("sweep", "c4-gaussians", "--dry-run", "--json", *over) == 0
    told = json.loads(capsys.readouterr().out)
    assert np.isclose(told["seconds"], 20 * told["seconds_each"])
    assert status("sweep", "c4-gaussians", "--dry-run", "--json", *over[:2]) == 0
    assert json.loads(capsys.readouterr().out)["seconds_each"] < told["seconds_each"]
    assert list(tmp_path.iterdir()) == []


def test_the_last_words_of_runs_are_read_from_their_logs(tmp_path):
    folder = RunFolder.create(tmp_path)
    (tmp_path / "logs").mkdir()
    for name, text in {
        "a": "$ equistein run\n[1/5] vanilla: 2.0 s\n\n",
        "b": "$ equistein run --out b\n",
        "long": "x" * 9_999 + "\n" + "12 of 300 epochs\n",
    }.items():
        _workers.log_of(folder, name).write_text(text)
    told = _workers.last_lines(folder, ["a", "b", "none", "long"])
    assert told == "a: [1/5] vanilla: 2.0 s; long: 12 of 300 epochs"
