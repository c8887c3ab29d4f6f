"""Ends commands at random moments, and sees that nothing is lost: `make faults`.

Each of run, fit, sweep and report is started, and told to end by SIGKILL, SIGTERM or
SIGINT at a random moment; then `resume`, or the same command again, must give the
numbers of the command that was let alone. Ctrl-C and SIGTERM leave no traceback and no
partial file. Prints a table for docs/reliability.md.
"""

import argparse
import collections
import concurrent.futures
import hashlib
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import numpy as np

COMPARED = ("metrics.json", "per_seed.json", "samples.npz", "history.jsonl")
SIGNALS = ("SIGKILL", "SIGTERM", "SIGINT")
COMMAND = [sys.executable, "-m", "equistein"]
STOPPED = {130, -signal.SIGTERM, -signal.SIGINT}  # the latter before Python has begun
SMALL = "--preset smoke --num-seeds 1".split()


def commands(place):
    """Return for each kind the arguments that begin it; OUT stands for its folder."""
    data = place / "points.npy"
    np.save(data, np.random.default_rng(0).normal(size=(64, 2)))
    fit = f"fit {data} --group cyclic:4 --num-epochs 6 --num-samples 16 --ais-steps 20"
    sweep = "sweep c4-gaussians --over seed=0,1 --workers 2 --preset smoke"
    return {
        "run": ["run", "c4-gaussians", *SMALL, "--out=OUT"],
        "fit": [*fit.split(), "--out=OUT"],
        "sweep": [*sweep.split(), "--out=OUT"],
        "report": ["report", "OUT"],
    }


def call(arguments, **options):
    """Begin a command."""
    return subprocess.Popen(
        [*COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, errors="replace", start_new_session=True, **options,
    )  # fmt: skip


def numbers(folder):
    """Return the digests of what a command gave."""
    return {
        name: hashlib.sha256((folder / name).read_bytes()).hexdigest()
        for name in COMPARED
        if (folder / name).is_file()
    }


def put(arguments, out):
    return [word.replace("OUT", str(out)) for word in arguments]


def uninterrupted(kind, arguments, place):
    """Return the folder of a command that was let alone, and how long it took."""
    out = place / f"{kind}-alone"
    if kind == "report":
        shutil.copytree(place / "run-alone", out)
    seconds = []
    for _ in range(1 if kind == "report" else 2):  # what is compiled is kept after one
        if kind != "report":
            shutil.rmtree(out, ignore_errors=True)
        began = time.monotonic()
        process = call(put(arguments, out))
        told, _ = process.communicate(timeout=600)
        assert process.returncode == 0, told
        seconds.append(time.monotonic() - began)
    return out, seconds[-1]


def faulted(kind, arguments, number, place, alone, seconds, moment):
    """Return what was wrong after a signal at a moment; nothing, if all is well."""
    with tempfile.TemporaryDirectory(dir=place) as made:
        out = pathlib.Path(made) / "out"
        if kind == "report":
            shutil.copytree(alone, out)
        process = call(put(arguments, out))
        time.sleep(moment)
        process.send_signal(number)
        told, _ = process.communicate(timeout=120)
        wrong = []
        if "Traceback" in told and "equistein" in told:
            wrong.append(f"traceback: {told[-1500:]}")
        if number != signal.SIGKILL and process.returncode not in {0, *STOPPED}:
            wrong.append(f"exit status {process.returncode}: {told[-300:]}")
        if number != signal.SIGKILL and list(out.rglob("*.part")):
            wrong.append(f"partial files {list(out.rglob('*.part'))}")
        begun = (out / "config.json").is_file() and kind != "report"
        again = call(["resume", str(out)] if begun else put(arguments, out))
        told, _ = again.communicate(timeout=600)
        if again.returncode or "Traceback" in told:
            wrong.append(f"resume gave {again.returncode}: {told[-1500:]}")
        elif numbers(out) != numbers(alone):
            wrong.append("other numbers")
        elif list(out.rglob("*.part")):
            wrong.append("partial files stay")
        return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--num", type=int, default=25, help="of each signal and kind")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=max(1, (os.cpu_count() or 1)))
    chosen = parser.parse_args()
    draw, place = random.Random(chosen.seed), pathlib.Path(tempfile.mkdtemp())
    table, failures = collections.Counter(), []
    kinds = commands(place)
    with concurrent.futures.ThreadPoolExecutor(chosen.workers) as pool:
        jobs = {}
        for kind, arguments in kinds.items():
            alone, seconds = uninterrupted(kind, arguments, place)
            print(f"{kind}: {seconds:.1f} s", flush=True)
            for name in SIGNALS:
                for _ in range(chosen.num):
                    moment = draw.uniform(0.05, 1.02 * seconds)
                    job = pool.submit(
                        faulted, kind, arguments, getattr(signal, name), place, alone,
                        seconds, moment,
                    )  # fmt: skip
                    jobs[job] = kind, name, moment
        for job in concurrent.futures.as_completed(jobs):
            kind, name, moment = jobs[job]
            wrong = job.result()
            table[kind, name, not wrong] += 1
            if wrong:
                failures.append((kind, name, moment, wrong))
                print(f"{kind} {name} at {moment:.2f} s: {wrong}", flush=True)
    shutil.rmtree(place)
    print("| | " + " | ".join(SIGNALS) + " |\n|---|" + "---|" * len(SIGNALS))
    for kind in kinds:
        cells = [f"{table[kind, name, True]} of {chosen.num}" for name in SIGNALS]
        print(f"| {kind} | " + " | ".join(cells) + " |")
    return len(failures)


if __name__ == "__main__":
    sys.exit(main())
