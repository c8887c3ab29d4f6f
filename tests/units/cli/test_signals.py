"""A command ends in order when it is told to, and one process works in a folder."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

COMMAND = [sys.executable, "-m", "equistein"]
# Long enough that a signal comes before the end, on a fast machine too.
OPTIONS = "--group trivial --num-epochs 4000 --network features --widths 4".split()
FIRST = "checkpoint/training.npz"


@pytest.fixture(autouse=True)
def _ctrl_c_is_heard():
    """Let commands hear Ctrl-C, which what a shell began in the background ignores."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def fit(tmp_path):
    """The command of a fit that takes minutes, all but its folder."""
    np.save(tmp_path / "data.npy", np.random.default_rng(0).normal(size=(64, 2)))
    return ["fit", tmp_path / "data.npy", *OPTIONS, "--num-samples", "8", "--out"]


def begun(*arguments):
    return subprocess.Popen(
        [*COMMAND, *map(str, arguments)], stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, start_new_session=True,
    )  # fmt: skip


def wait_for(path, process):
    end = time.monotonic() + 120
    while not path.exists():
        assert process.poll() is None
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="of POSIX alone")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_run_in_order_and_a_second_at_once(number, fit, tmp_path):
    out = tmp_path / "run"
    process = begun(*fit, out)
    wait_for(out / FIRST, process)
    process.send_signal(signal.SIGSTOP)  # so that it is not done before
    other = begun("resume", out)
    told, _ = other.communicate(timeout=60)
    process.send_signal(signal.SIGCONT)
    assert other.returncode == 2
    assert "Another process works in" in told
    process.send_signal(number)
    time.sleep(0.2)
    process.send_signal(number)
    told, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in told
    assert not list(out.rglob("*.part"))


def test_no_thread_begins_a_file_when_the_unfinished_ones_are_removed(tmp_path):
    code = f"""
import pathlib, threading, time
from equistein._files import remove_unfinished, write_whole
written = []
def work():
    while True:
        write_whole(pathlib.Path({str(tmp_path)!r}, "file"), b"0")
        written.append(0)
threading.Thread(target=work, daemon=True).start()
while not written:
    time.sleep(0.01)
remove_unfinished()
time.sleep(0.1)
before = len(written)
time.sleep(0.2)
print(len(written) - before)
"""
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert told.stdout.strip() == "0", told.stderr


@pytest.mark.slow
def test_ctrl_c_while_a_command_starts_leaves_no_traceback():
    for moment in (0.15, 0.3, 0.4, 0.5, 0.7, 1.0, 1.5):
        process = begun("doctor")
        time.sleep(moment)
        process.send_signal(signal.SIGINT)
        told, _ = process.communicate(timeout=60)
        assert "equistein" not in told or "Traceback" not in told, (moment, told)


@pytest.mark.slow
def test_a_folder_that_is_deleted_meanwhile_ends_the_fit(fit, tmp_path):
    out = tmp_path / "run"
    process = begun(*fit, out)
    wait_for(out / FIRST, process)
    out.rename(tmp_path / "elsewhere")
    told, _ = process.communicate(timeout=120)
    assert process.returncode == 2
    assert "Traceback" not in told
    assert not out.exists()
