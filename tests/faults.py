"""Disturbs commands, and sees that nothing is lost: `make faults`.

Each of an experiment, fit, sweep and report is ended by SIGKILL, SIGTERM or SIGINT at a
random moment; then `resume`, or the same command again, must give the numbers, samples,
history and report of the command that was let alone. Ctrl-C and SIGTERM leave no
traceback and no partial file. The faults of `fault_extras` come first. Each result is a
line of `--out`, which is not repeated. Prints a table for docs/reliability.md.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import random
import shutil
import signal
import sys
import tempfile
import time

import fault_commands
import fault_extras

SIGNALS = ("SIGKILL", "SIGTERM", "SIGINT")
KINDS = ("run", "fit", "sweep", "report")


def faulted(kinds, kind, name, draw, folder):
    """Return what was wrong after a signal at a random moment."""
    out, number = folder / "out", getattr(signal, name)
    if kind == "report":
        shutil.copytree(kinds.alone[kind], out)
    process = kinds.begin(kinds.arguments[kind], out)
    kinds.wait(kind, process, draw.uniform(0.02, 0.98))
    process.send_signal(number)
    told, _ = process.communicate(timeout=fault_commands.SECONDS)
    good = {-signal.SIGKILL} if number == signal.SIGKILL else fault_commands.STOPPED
    wrong = fault_commands.unclear(told, process.returncode, {0, *good})
    if number != signal.SIGKILL and fault_commands.parts_in(out):
        wrong.append(f"partial files {fault_commands.parts_in(out)}")
    return wrong + kinds.gone_on(kind, out)


def planned(num, num_extra, chosen):
    """Return all faults, as kind, name and number, so that some of each come early."""
    some = [
        (kind, name, index)
        for index in range(num)
        for name in SIGNALS
        for kind in chosen
    ]
    more = [
        (kind, name, index)
        for index in range(num_extra)
        for name, (kinds, _) in fault_extras.EXTRAS.items()
        for kind in kinds
        if kind in chosen
    ]
    return more + some


def done(kinds, fault, seed):
    """Make one fault, in a folder of its own; return its line."""
    kind, name, index = fault
    draw, began = random.Random(f"{seed} {fault}"), time.monotonic()
    with tempfile.TemporaryDirectory(dir=kinds.place) as made:
        if name in SIGNALS:
            wrong = faulted(kinds, kind, name, draw, pathlib.Path(made))
        else:
            wrong = fault_extras.EXTRAS[name][1](kinds, kind, draw, pathlib.Path(made))
    skipped = wrong if isinstance(wrong, str) else ""
    return {
        "kind": kind, "name": name, "index": index, "skipped": skipped,
        "wrong": [] if skipped else wrong,
        "seconds": round(time.monotonic() - began, 1),
    }  # fmt: skip


def table(lines):
    """Return a table of what held, for each kind of command and of fault."""
    found = collections.defaultdict(list)
    for line in lines:
        found[line["name"], line["kind"]].append(line)
    names = list(dict.fromkeys(name for name, _ in found))
    kinds = list(dict.fromkeys(kind for _, kind in found))

    def cell(name, kind):
        those = [line for line in found[name, kind] if not line["skipped"]]
        held = sum(not line["wrong"] for line in those)
        return f"{held} of {len(those)}" if those else "–"

    rows = ["| | " + " | ".join(kinds) + " |", "|---|" + "---|" * len(kinds)]
    for name in names:
        rows.append(f"| {name} | " + " | ".join(cell(name, k) for k in kinds) + " |")
    return "\n".join(rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--num", type=int, default=25, help="of each signal and kind")
    parser.add_argument("--num-extra", type=int, default=3, help="of each other fault")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=max(1, (os.cpu_count() or 1)))
    parser.add_argument("--out", type=pathlib.Path, default="faults.jsonl")
    chosen = parser.parse_args()
    # What a shell begins in the background ignores Ctrl-C, and so would the commands.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    lines = []
    if chosen.out.exists():
        lines = [json.loads(line) for line in chosen.out.read_text().splitlines()]
    known = {(line["kind"], line["name"], line["index"]) for line in lines}
    every = planned(chosen.num, chosen.num_extra, chosen.kinds)
    todo = [fault for fault in every if fault not in known]
    with tempfile.TemporaryDirectory() as place:
        kinds = fault_commands.Kinds(pathlib.Path(place))
        for kind in dict.fromkeys(["run", *chosen.kinds]):  # a report is one of a run
            kinds.let_alone(kind)
            print(f"{kind}: {kinds.seconds[kind]:.1f} s", flush=True)
        with concurrent.futures.ThreadPoolExecutor(chosen.workers) as pool:
            jobs = [pool.submit(done, kinds, fault, chosen.seed) for fault in todo]
            for job in concurrent.futures.as_completed(jobs):
                line = job.result()
                lines.append(line)
                with chosen.out.open("a") as file:
                    file.write(json.dumps(line) + "\n")
                if line["wrong"] or line["skipped"]:
                    print(line, flush=True)
    wanted = [x for x in lines if (x["kind"], x["name"], x["index"]) in {*every}]
    print(table(wanted))
    return int(any(line["wrong"] for line in wanted))


if __name__ == "__main__":
    sys.exit(main())
