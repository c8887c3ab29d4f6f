import json
import os
import socket
import subprocess
import sys
import time

import numpy as np
import pytest
from command_line import COMMON, status

from equistein.cli import _meeting

FIT = ["--group", "cyclic:4", *COMMON, *"--num-particles 64 --num-steps 4".split()]
FIT += "--num-epochs 30 --batch-size 16 --widths 16".split()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--coordinator", "a:1"], "--num-processes N and --process-id I together"),
        ("--coordinator a:1 --num-processes 2 --process-id x".split(), "together"),
        ("--coordinator a:1 --num-processes 2 --process-id 2".split(), "below 2"),
        ("--coordinator a --num-processes 2 --process-id 1".split(), "HOST:PORT"),
        ("--coordinator a:b --num-processes 2 --process-id 1".split(), "HOST:PORT"),
        (
            "--coordinator 127.0.0.1:1 --num-processes 2 --process-id 1".split(),
            "Nobody answers at --coordinator 127.0.0.1:1",
        ),
        (
            "--coordinator localhost:0 --num-processes 2 --process-id 0".split(),
            "HOST:PORT",
        ),
        (
            "--coordinator localhost:FREE --num-processes 3 --process-id 0".split(),
            "Processes 1, 2 did not come within 0.1 seconds",
        ),
    ],
)
def test_processes_that_cannot_meet_say_why(options, message, capsys, monkeypatch):
    monkeypatch.setattr(_meeting, "PATIENCE", 0.1)
    options = [option.replace("FREE", str(free_port())) for option in options]
    begin = ["fit", "none.npy", "--group", "cyclic:4", "--distributed"]
    assert status(*begin, *options) == 2
    assert message in capsys.readouterr().err


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def processes(*arguments, different=()):
    """Begin the command in two processes of two devices each."""
    together = (
        f"--distributed --coordinator 127.0.0.1:{free_port()} --num-processes 2".split()
    )
    return [
        process(
            *arguments, *together, *(different if number else ()),
            "--process-id", number,
        )
        for number in range(2)
    ]  # fmt: skip


def process(*arguments):
    """Begin the command in a process of its own, of two devices."""
    flags = "--xla_force_host_platform_device_count=2 "
    flags += os.environ.get("XLA_FLAGS", "")
    program = "import sys; from equistein.cli import main; sys.exit(main(sys.argv[1:]))"
    return subprocess.Popen(
        [sys.executable, "-c", program, *map(str, arguments)],
        env=os.environ | {"XLA_FLAGS": flags}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip


def ends(started, seconds=240):
    """Return the exit statuses of processes, and what they told."""
    told = [each.communicate(timeout=seconds)[0] for each in started]
    return [each.returncode for each in started], told


def lose(number, started, checkpoint):
    """Kill one of two processes after an epoch; check that the other ends by itself."""
    epoch = lambda: checkpoint.exists() and checkpoint.stat().st_mtime_ns
    before, end = epoch(), time.monotonic() + 240
    while epoch() == before and time.monotonic() < end:
        assert started[0].poll() is None
        time.sleep(0.05)
    started[number].kill()
    lost = time.monotonic()
    found, told = ends(started)
    other = 1 - number
    assert time.monotonic() - lost < 60
    assert found[other] != 0
    assert "another task died" in told[other] or "was lost" in told[other]


@pytest.mark.slow
def test_a_fit_that_loses_either_process_ends_and_can_go_on(tmp_path):
    rng = np.random.default_rng(0)
    np.save(tmp_path / "points.npy", rng.normal(size=(64, 2)).astype(np.float32))
    begin = ["fit", tmp_path / "points.npy", *FIT]
    out = tmp_path / "shared"
    checkpoint = out / "checkpoint" / "training.eqx"
    lose(1, processes(*begin, "--out", out), checkpoint)
    lose(0, processes("resume", out), checkpoint)
    assert not (out / "metrics.json").exists()
    found, told = ends(processes("resume", out))
    assert found == [0, 0], told
    alone = tmp_path / "alone"
    assert status(*begin, "--out", alone) == 0
    numbers = [
        json.loads((folder / "metrics.json").read_text())["model"]
        for folder in (out, alone)
    ]
    for name in ("median_model_energy", "log_normalizer"):
        assert numbers[0][name] == pytest.approx(numbers[1][name], rel=1e-3)


@pytest.mark.slow
def test_processes_share_the_parts_of_a_run(tmp_path):
    """Each has a part that trains beside one of the other that does not."""
    begin = "run dw4 --preset smoke".split()
    out, alone = tmp_path / "shared", tmp_path / "alone"
    found, told = ends(processes(*begin, "--out", out))
    assert found == [0, 0], told
    found, told = ends([process(*begin, "--out", alone)])
    assert found == [0], told
    numbers = (alone / "metrics.json").read_bytes()
    assert (out / "metrics.json").read_bytes() == numbers
    kept = sorted(out.glob("checkpoint/*.npz"))
    assert len(kept) > 2
    for part in (kept[0], kept[-1], out / "metrics.json"):
        part.unlink()
    found, told = ends(processes("resume", out))
    assert found == [0, 0], told
    assert "done before" in told[0]
    assert (out / "metrics.json").read_bytes() == numbers


@pytest.mark.slow
def test_a_part_that_fails_ends_all_processes_with_the_reason(tmp_path):
    """Only one of the two has a part whose steps break down."""
    begin = "run two-circles --preset smoke --num-seeds 1 --num-steps 8".split()
    begin += ["--step-size", "1e30", "--out", tmp_path / "out"]
    found, told = ends(processes(*begin))
    assert all(found), told
    assert "stopped being finite" in told[0] + told[1]


@pytest.mark.slow
def test_a_mistake_of_the_first_process_ends_all(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "there.txt").write_text("")
    begin = "run two-circles --preset smoke --num-seeds 1 --num-steps 8".split()
    found, told = ends(processes(*begin, "--out", tmp_path / "out"), seconds=100)
    assert found == [2, 2], told
    assert all("is not empty" in each for each in told)
    assert "Process 0: The output folder" in told[1]


@pytest.mark.slow
def test_processes_that_disagree_end_with_the_reason(tmp_path):
    np.save(tmp_path / "points.npy", np.ones((64, 2), np.float32))
    begin = ["fit", tmp_path / "points.npy", *FIT, "--out", tmp_path / "out"]
    found, told = ends(processes(*begin, different=["--seed", "1"]))
    assert found == [2, 2]
    assert "Processes 1 have other arguments than process 0" in told[0]
    assert not (tmp_path / "out").exists()
