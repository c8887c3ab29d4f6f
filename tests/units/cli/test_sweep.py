import csv
import json
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from command_line import status

from equistein.cli._sweep import combinations
from equistein.runs import UserError

pytest.importorskip("submitit")
TINY = "--group trivial --network features --widths 4 --num-epochs 2 --num-samples 6"


@pytest.fixture
def sweep(tmp_path):
    """A sweep of two tiny fits, all but its folder."""
    np.save(tmp_path / "data.npy", np.random.default_rng(0).normal(size=(40, 2)))
    tiny = [*TINY.split(), "--sample-steps", "5", "--ais-steps", "5"]
    return ["sweep", "fit", tmp_path / "data.npy", *tiny, "--over", "seed=3..4"]


def test_runs_are_all_combinations():
    found = combinations(["seed=0..2", "--step-size=.1,1e-2"])
    assert found[:3] == [
        {"seed": "0", "step_size": ".1"},
        {"seed": "0", "step_size": "1e-2"},
        {"seed": "1", "step_size": ".1"},
    ]
    assert len(found) == 6
    assert [each["seed"] for each in combinations(["seed=7,0..1"])] == ["7", "0", "1"]


@pytest.mark.parametrize(
    "over",
    [
        [], ["seed"], ["=1,2"], ["seed=1,,2"], ["seed=1,2,1"], ["seed=5..1"],
        ["seed=0..10000000"], ["seed=0..999", "step_size=0..999"],
    ],
)  # fmt: skip
def test_what_cannot_be_swept_is_refused(over):
    with pytest.raises(UserError, match="--over|at most"):
        combinations(over)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["sweep", "--over", "seed=0..1"], "needs a command"),
        (["sweep", "dw4", "--over", "seed=0"], "needs a command"),
        (["sweep", "fit", "x", "--over", "seed=0", "--workers", "0"], "--workers"),
        (["sweep", "fit", "x", "--over", "seed=0", "--colour", "1"], "--colour"),
    ],
)
def test_an_invalid_sweep_writes_nothing(arguments, said, tmp_path, capsys):
    assert status(*arguments, "--out", tmp_path / "out") == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_dry_run_prints_the_runs_and_writes_nothing(sweep, tmp_path, capsys):
    assert status(*sweep, "--dry-run", "--out", tmp_path / "out", "--json") == 0
    assert json.loads(capsys.readouterr().out)["runs"] == ["seed=3", "seed=4"]
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::Warning")  # of submitit
def test_a_killed_sweep_continues_to_one_table_and_report(sweep, tmp_path):
    out = tmp_path / "sweep"
    words = [*map(str, sweep), "--workers", "1", "--out", str(out)]
    process = subprocess.Popen([sys.executable, "-m", "equistein", *words])
    finished = out / "finished.json"
    try:
        end = time.monotonic() + 480
        while not finished.exists() and process.poll() is None:
            assert time.monotonic() < end
            time.sleep(0.1)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert finished.exists()
    jobs = out / "jobs"  # those that run go on without the sweep
    while len([*jobs.glob("*_result.pkl")]) < len([*jobs.glob("*_submitted.pkl")]):
        assert time.monotonic() < end
        time.sleep(0.1)
    assert status("resume", out) == 0
    assert json.loads(finished.read_text())["finished"] == ["0000", "0001"]
    metrics = json.loads((out / "metrics.json").read_text())["entries"]
    both = [
        json.loads((out / "members" / name / "metrics.json").read_text())
        for name in ("0000", "0001")
    ]
    name = next(iter(both[0]["entries"]["model"]))
    values = [each["entries"]["model"][name] for each in both]
    assert metrics["model"][name] == pytest.approx(np.mean(values))
    rows = list(csv.DictReader((out / "table.csv").read_text().splitlines()))
    assert [row["seed"] for row in rows if row["entry"] == "model"] == ["3", "4"]
    assert status("report", out) == 0
