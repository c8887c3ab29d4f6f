"""The commands that `make faults` disturbs, and what they must give all the same."""

import contextlib
import html
import json
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import sys
import time

import numpy as np

COMPARED = ("metrics.json", "per_seed.json", "samples.npz", "history.jsonl")
COMMAND = [sys.executable, "-m", "equistein"]
STOPPED = {130, -signal.SIGTERM, -signal.SIGINT}  # the latter before Python has begun
TINY = "--preset smoke --num-particles 6 --num-steps 8"
FIT = (
    "--num-epochs 4 --batch-size 8 --sample-steps 10 --num-samples 6 --ais-steps 10 "
    "--bandwidth 1 --num-particles 6 --num-steps 2 --widths 4"
)
SECONDS = 3_600  # at most for a command, on a machine that others use too


class Kinds:
    """The commands in a place, each with the folder that it gave when let alone.

    What they compile is kept in the place, and shared.
    """

    def __init__(self, place):
        self.place = place
        self.environment = {
            name: value
            for name, value in os.environ.items()
            if name not in ("JAX_COMPILATION_CACHE_DIR", "JAX_ENABLE_COMPILATION_CACHE")
        } | {"EQUISTEIN_CACHE": str(place / "cache")}
        data = place / "points.npy"
        np.save(data, np.random.default_rng(0).normal(size=(40, 2)))
        sweep = f"sweep -m experiments two-circles {TINY} --over seed=0,1 --workers 1"
        self.arguments = {
            "run": f"-m experiments two-circles {TINY} --num-seeds 1 --out=OUT".split(),
            "fit": f"fit {data} --group cyclic:4 {FIT} --out=OUT".split(),
            "sweep": [*sweep.split(), "--out=OUT"],
            "report": ["report", "OUT"],
        }
        self.alone, self.seconds = {}, {}

    def begin(self, arguments, out, **more):
        """Begin a command; OUT stands for its folder."""
        return subprocess.Popen(
            command(arguments, out), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, errors="replace", start_new_session=True,
            env=self.environment | more,
        )  # fmt: skip

    def let_alone(self, kind):
        """Run a command twice: what it compiles is kept, and its report is the same."""
        reports = []
        for name in ("first", "alone"):
            out = self.place / f"{kind}-{name}"
            if kind == "report":
                shutil.copytree(self.alone["run"], out)
            began = _of_children()
            told, _ = (process := self.begin(self.arguments[kind], out)).communicate(
                timeout=SECONDS
            )
            assert process.returncode == 0, told
            self.seconds[kind] = _of_children() - began
            reports.append(given(out))
        assert reports[0] == reports[1], differing(*reports)
        self.alone[kind] = out

    def wait(self, kind, process, part):
        """Wait until a command has done a part of its work, by its processor time.

        How much others use the machine then changes nothing.
        """
        while process.poll() is None:
            if spent(process.pid) > part * self.seconds[kind]:
                return
            time.sleep(0.01)

    def gone_on(self, kind, out):
        """Go on, by resume or the same command; return what was wrong."""
        begun = (out / "config.json").is_file() and kind in ("fit", "sweep")
        arguments = ["resume", "OUT"] if begun else self.arguments[kind]
        again = self.begin(arguments, out)
        told, _ = again.communicate(timeout=SECONDS)
        if again.returncode or "Traceback" in told:
            return [f"resume gave {again.returncode}: {told[-1500:]}"]
        return self.compared(kind, out)

    def compared(self, kind, out):
        """Return what is not as the command gives it when it is let alone."""
        wrong = differing(given(out), given(self.alone[kind]))
        if list(out.rglob("*.part")):
            wrong.append("partial files stay")
        return wrong


def command(arguments, out):
    """Return the words of a command: of the library, or with -m another module's."""
    words = [word.replace("OUT", str(out)) for word in arguments]
    return [sys.executable, *words] if words[0] == "-m" else [*COMMAND, *words]


def _of_children():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def spent(session):
    """Return the processor time of all processes that a command has begun."""
    ticks = 0
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # one that has just ended
            fields = path.read_text().rpartition(")")[2].split()
            if int(fields[3]) == session:
                ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def unclear(told, status, good):
    """Return what is wrong with how a command ended."""
    wrong = []
    if "Traceback" in told and "equistein" in told:
        wrong.append(f"traceback: {told[-1500:]}")
    if status not in good:
        wrong.append(f"exit status {status}: {told[-500:]}")
    return wrong


def given(folder):
    """Return what a command gave, and its report without time and place."""
    found = {
        name: (folder / name).read_bytes()
        for name in COMPARED
        if (folder / name).is_file()
    }
    if (folder / "report.html").is_file():
        text = (folder / "report.html").read_text()
        began = json.loads((folder / "environment.json").read_text())
        # Of a disk that was full at once, the command is that which went on.
        command = html.escape(began["command"])
        cache = began["variables"].get("EQUISTEIN_CACHE", "")
        for each in (began["started"], command, cache):
            text = text.replace(each, "")
        found["report.html"] = text
    return found


def differing(first, second):
    """Return what differs."""
    names = sorted({*first, *second})
    return [f"other {n}" for n in names if first.get(n) != second.get(n)]


def parts_in(out):
    return list(pathlib.Path(out).rglob("*.part"))
