import json
import os
import socket
import subprocess
import sys
import time

import numpy as np
import pytest
from command_line import COMMON, status

from equistein.cli import _hosts

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
    ],
)
def test_processes_that_cannot_meet_say_why(options, message, capsys, monkeypatch):
    monkeypatch.setattr(_hosts, "_PATIENCE", 0.1)
    begin = ["fit", "none.npy", "--group", "cyclic:4", "--distributed"]
    assert status(*begin, *options) == 2
    assert message in capsys.readouterr().err


def processes(*arguments, different=()):
    """Begin the command in two processes of two devices each."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    flags = "--xla_force_host_platform_device_count=2"
    program = "import sys; from equistein.cli import main; sys.exit(main(sys.argv[1:]))"
    together = f"--distributed --coordinator 127.0.0.1:{port} --num-processes 2".split()
    return [
        subprocess.Popen(
            [sys.executable, "-c", program, *map(str, arguments), *together,
             *(different if number else ()), "--process-id", str(number)],
            env=os.environ | {"XLA_FLAGS": flags}, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )
        for number in range(2)
    ]  # fmt: skip


def ends(started, seconds=240):
    """Return the exit statuses of processes, and what they told."""
    told = [each.communicate(timeout=seconds)[0] for each in started]
    return [each.returncode for each in started], told


@pytest.mark.slow
def test_a_lost_process_ends_the_fit_which_can_go_on(tmp_path):
    rng = np.random.default_rng(0)
    np.save(tmp_path / "points.npy", rng.normal(size=(64, 2)).astype(np.float32))
    begin = ["fit", tmp_path / "points.npy", *FIT]
    out = tmp_path / "shared"
    started = processes(*begin, "--out", out)
    checkpoint = out / "checkpoint" / "training.eqx"
    end = time.monotonic() + 240
    while not checkpoint.exists() and time.monotonic() < end:
        assert started[0].poll() is None
        time.sleep(0.05)
    started[1].kill()
    lost = time.monotonic()
    (first, _), (told, _) = ends(started)
    assert time.monotonic() - lost < 60
    assert first != 0
    assert "another task died" in told or "was lost" in told
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
def test_processes_that_disagree_end_with_the_reason(tmp_path):
    np.save(tmp_path / "points.npy", np.ones((64, 2), np.float32))
    begin = ["fit", tmp_path / "points.npy", *FIT, "--out", tmp_path / "out"]
    found, told = ends(processes(*begin, different=["--seed", "1"]))
    assert found == [2, 2]
    assert "Processes 1 have other arguments than process 0" in told[0]
    assert not (tmp_path / "out").exists()
