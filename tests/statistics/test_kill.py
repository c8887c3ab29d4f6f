import json
import os
import pathlib
import subprocess
import sys
import time

import numpy as np
import pytest

pytestmark = pytest.mark.slow

PROGRAM = "import sys; from equistein.cli import main; sys.exit(main(sys.argv[1:]))"
SETTINGS = "--group trivial --num-epochs 2000 --batch-size 8 --num-particles 8".split()
SETTINGS += "--num-steps 20 --sample-steps 20000 --num-samples 24 --widths 8".split()
SETTINGS += "--bandwidth 1 --buffer-size 20 --sample-at-once 8".split()
# Each phase but the first needs those before it to be over, so they come in order.
KILLS = ["import", "training", "import", "training", "sampling", "import", "sampling"]
FILES = ("checkpoint/training.npz", "checkpoint/model.eqx")


class Runner:
    """Starts the command line in processes that share compiled programs."""

    def __init__(self, folder: pathlib.Path):
        self.environment = os.environ | {
            "JAX_COMPILATION_CACHE_DIR": str(folder / "cache"),
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
            "JAX_ENABLE_X64": "0",
        }
        self.log = folder / "log.txt"

    def start(self, *arguments):
        with self.log.open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-c", PROGRAM, *map(str, arguments)],
                env=self.environment, stdout=log, stderr=log,
            )  # fmt: skip

    def finish(self, *arguments):
        assert self.start(*arguments).wait(timeout=300) == 0, self.log.read_text()


def written_since(path, moment):
    return path.exists() and path.stat().st_mtime_ns > moment


def kill_in(phase, process, out, moment, rng):
    """Kill a process at a random moment of a phase; return whether it was alive."""
    sign = {"training": FILES[0], "sampling": FILES[1]}.get(phase)
    while sign and process.poll() is None and not written_since(out / sign, moment):
        time.sleep(0.01)
    time.sleep(rng.uniform(0, 2.0 if phase == "import" else 0.5))
    alive = process.poll() is None
    process.kill()
    process.wait()
    return alive


def test_a_fit_killed_seven_times_ends_with_the_same_bytes(tmp_path):
    rng = np.random.default_rng(0)
    np.save(tmp_path / "data.npy", rng.normal(size=(80, 2)))
    runner, whole, parts = Runner(tmp_path), tmp_path / "whole", tmp_path / "parts"
    runner.finish("fit", tmp_path / "data.npy", *SETTINGS, "--out", whole)
    begin = ["fit", tmp_path / "data.npy", *SETTINGS, "--out", parts]
    kept = []
    for phase in KILLS:
        began = (parts / "config.json").exists()
        moment = time.time_ns()
        process = runner.start(*(["resume", parts] if began else begin))
        assert kill_in(phase, process, parts, moment, rng), (phase, runner.log)
        kept.append({name: (parts / name).exists() for name in FILES})
    # The kills fell where they should: before, amid and after the training.
    training, model = ([there[name] for there in kept] for name in FILES)
    assert training == [False] + [True] * 6
    assert model == [False] * 4 + [True] * 3
    assert not (parts / "metrics.json").exists()
    runner.finish("resume", parts)
    for name in (*FILES, "metrics.json"):
        assert (parts / name).read_bytes() == (whole / name).read_bytes(), name
    histories = [
        [json.loads(line) for line in (run / "history.jsonl").read_text().splitlines()]
        for run in (parts, whole)
    ]
    assert histories[0] == histories[1]
