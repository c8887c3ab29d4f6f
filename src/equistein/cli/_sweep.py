"""`equistein sweep`: a command for each combination of some settings, by submitit."""

import csv
import dataclasses
import io
import itertools
import math
import os
import pathlib
import re
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import numpy as np
import tyro

from equistein import runs
from equistein._progress import progress_bar
from equistein.cli._fit import default_folder
from equistein.cli._output import answer, say
from equistein.cli._signals import run_locked
from equistein.runs import RunFolder, UserError

_FINISHED, _JOBS = "finished.json", "jobs"
_MOST = 100_000  # runs of a sweep
_MINUTES = 7 * 24 * 60  # that a run may take
_SECONDS = 0.5  # between two looks at the jobs


@dataclasses.dataclass(frozen=True, kw_only=True)
class Sweep:
    """Run a command for each combination of some settings.

    equistein sweep fit DATA [its options] --over seed=0..4 --over
    learning_rate=1e-3,3e-3

    equistein sweep -m experiments c4-gaussians --over seed=0..19

    One report and one table are made of all; each run has a folder under members/. A
    sweep that was stopped continues with `equistein resume`.

    Attributes:
        over: An option and its values, such as seed=0..19; may be repeated.
        workers: Runs at a time; by default one for each CPU.
        out: The folder of the sweep, new or empty; by default one under runs.
        cluster: Where runs go: `local` processes, or `slurm`.
        cluster_options: Parameters of submitit, such as timeout_min=60
            slurm_partition=gpu.
        dry_run: Print the runs, but run and write nothing.
    """

    over: Annotated[tuple[str, ...], tyro.conf.UseAppendAction] = ()
    workers: int | None = None
    out: pathlib.Path | None = None
    cluster: Literal["local", "slurm"] = "local"
    cluster_options: tuple[str, ...] = ()
    dry_run: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    command: tyro.conf.Suppress[tuple[str, ...]] = ()

    @classmethod
    def parse(cls, words: Sequence[str]) -> "Sweep":
        """Return the sweep that the words describe: a command, --over and the rest."""
        place = list(words).index("--over") if "--over" in words else 0
        sweep = tyro.cli(cls, args=list(words[place:]), prog="equistein sweep")
        return dataclasses.replace(sweep, command=tuple(words[:place]))

    def execute(self) -> int:
        """Make the folder, and run."""
        if self.workers is not None and self.workers < 1:
            raise UserError(f"--workers must be at least 1, but got {self.workers}.")
        if self.command[:1] not in (("fit",), ("-m",)):
            raise UserError(
                "A sweep needs a command first, and its options before --over: "
                "equistein sweep fit DATA --group G --over width=32,64, or equistein "
                "sweep -m MODULE --over seed=0..9"
            )
        settings = combinations(self.over)
        _executor(pathlib.Path(), self.cluster, self.cluster_options)
        if self.dry_run:
            names = ["; ".join(map("=".join, each.items())) for each in settings]
            text = f"{len(names)} runs: {' | '.join(names)}. Nothing is written."
            answer(text, runs=names)
            return 0
        folder = RunFolder.create(self.out or default_folder("sweep"))
        described = {
            "command": "sweep", "arguments": self.command, "over": self.over,
            "workers": self.workers or os.cpu_count(), "cluster": self.cluster,
            "cluster_options": self.cluster_options,
        }  # fmt: skip
        folder.write_json("config.json", described)
        runs.write_environment(folder)
        return run_members(folder)


def combinations(over: Sequence[str]) -> list[dict[str, str]]:
    """Return the settings of all runs, from `option=1,2,3` or `option=0..19` each."""
    swept = {}
    for text in over:
        option, _, written = text.partition("=")
        option = option.strip().lstrip("-").replace("-", "_")
        values = [v for part in written.split(",") for v in _values(part.strip())]
        if not option or not all(values) or len(set(values)) < len(values):
            raise UserError(
                "--over needs an option and its values, all different, such as "
                f"bandwidth=.1,.2 or seed=0..19, but got {text!r}."
            )
        swept[option] = values
    if not swept or math.prod(map(len, swept.values())) > _MOST:
        raise UserError(f"A sweep needs --over, and has at most {_MOST} runs.")
    return [
        dict(zip(swept, row, strict=True)) for row in itertools.product(*swept.values())
    ]


def _values(part: str) -> list[str]:
    numbers = re.fullmatch(r"(-?\d+)\.\.(-?\d+)", part)
    if numbers is None:
        return [part]
    begin, end = map(int, numbers.groups())
    return list(map(str, range(begin, min(end, begin + _MOST) + 1))) or [""]


def run_members(folder: RunFolder) -> int:
    """Do the runs of a sweep that are not finished, and write table and report."""
    described = folder.read_json("config.json")
    settings = combinations(described["over"])
    members = {f"{i:04d}": each for i, each in enumerate(settings)}

    def work() -> int:
        finished = _run_all(folder, described, members)
        done = {name: members[name] for name in sorted(finished)}
        if done:
            _write_results(folder, described, done, len(members))
        for name in sorted(set(members) - set(done)):
            jobs = folder.path / _JOBS
            print(f"equistein: run {name} failed: see {jobs}.", file=sys.stderr)
        return int(len(done) < len(members))

    return run_locked(folder, work)


def _run_all(
    folder: RunFolder, described: Mapping[str, Any], members: Mapping[str, Any]
) -> list[str]:
    """Do the runs that are not finished, and return the names of those that are."""
    known = folder.has(_FINISHED)
    finished = list(folder.read_json(_FINISHED)["finished"]) if known else []
    waiting = [name for name in members if name not in finished]
    say(f"{len(members)} runs, {len(finished)} of them finished before")
    place, jobs = folder.path.absolute() / "members", folder.path / _JOBS
    executor = _executor(jobs, described["cluster"], described["cluster_options"])
    running: dict[str, Any] = {}
    try:
        with progress_bar(total=len(waiting), unit="run") as bar:
            while waiting or running:
                while waiting and len(running) < described["workers"]:
                    name = waiting.pop(0)
                    out = str(place / name)
                    words = _words(described["arguments"], members[name], out)
                    running[name] = _submit(executor, words, jobs)
                time.sleep(_SECONDS)
                for name in [name for name, job in running.items() if job.done()]:
                    job = running.pop(name)
                    if job.exception() is None and job.result() == 0:
                        finished.append(name)
                        folder.write_json(_FINISHED, {"finished": finished})
                    bar.update()
    finally:
        for job in running.values():  # where the sweep was stopped
            job.cancel()
    return finished


def _executor(path: pathlib.Path, cluster: str, options: Sequence[str]) -> Any:
    """Return what submits jobs."""
    try:
        import submitit

        executor = submitit.AutoExecutor(folder=str(path), cluster=cluster)
        pairs = (option.partition("=") for option in options)
        parameters = {key: int(v) if v.isdecimal() else v for key, _, v in pairs}
        executor.update_parameters(**({"timeout_min": _MINUTES} | parameters))
        return executor
    except ImportError:
        reason = "A sweep needs submitit: pip install 'equistein[sweep]'."
    except (NameError, RuntimeError, TypeError, ValueError) as error:
        reason = f"submitit cannot use --cluster {cluster}: {error}"
    raise UserError(reason)


def _submit(executor: Any, words: Sequence[str], jobs: pathlib.Path) -> Any:
    """Submit a run; submitit's traceback of one that is stopped goes to a file."""
    jobs.mkdir(exist_ok=True)
    terminal = os.dup(2)
    try:
        with (jobs / "submitit.log").open("ab") as log:
            os.dup2(log.fileno(), 2)
            return executor.submit(subprocess.call, words)
    finally:
        os.dup2(terminal, 2)
        os.close(terminal)


def _words(words: Sequence[str], settings: Mapping[str, str], out: str) -> list[str]:
    """Return the command line that begins a run of the sweep, or continues it."""
    options = [f"--{k.replace('_', '-')}={v}" for k, v in settings.items()]
    if words[0] == "-m":
        return [sys.executable, *words, *options, f"--out={out}"]
    if os.path.isfile(os.path.join(out, "config.json")):
        return [sys.executable, "-m", "equistein", "resume", out]
    return [sys.executable, "-m", "equistein", *words, *options, f"--out={out}"]


def _write_results(
    folder: RunFolder,
    described: Mapping[str, Any],
    members: Mapping[str, dict[str, str]],
    num: int,
) -> None:
    """Write metrics.json, table.csv and the report of all runs that are finished."""
    # Runs that differ in the seed alone are one row, with their spread.
    pooled: dict[str, dict[str, list[float]]] = {}
    lines, about = [], {}
    for name, settings in members.items():
        member = RunFolder.open(folder.path / "members" / name)
        about |= member.read_json("metrics.json")["about"]
        others = " ".join(f"{k}={v}" for k, v in settings.items() if k != "seed")
        for entry, metrics in member.read_json("per_seed.json").items():
            row = pooled.setdefault(f"{entry} {others}".strip(), {})
            for metric, values in metrics.items():
                row[metric] = row.get(metric, []) + values
            for index, values in enumerate(itertools.zip_longest(*metrics.values())):
                line = {"run": name, "entry": entry, "seed_index": index}
                lines.append(line | settings | dict(zip(metrics, values, strict=True)))
    rows = {
        row: runs.summarize({k: np.array(v, float) for k, v in metrics.items()})
        for row, metrics in pooled.items()
    }
    floors = [row for row in rows if row.split(" ")[0] == runs.FLOOR]
    floor = rows.pop(floors[0]) if len(floors) == 1 else {}
    folder.write_json("metrics.json", {"entries": rows, "floor": floor, "about": about})
    table, columns = io.StringIO(), dict.fromkeys(k for line in lines for k in line)
    writer = csv.DictWriter(table, list(columns), lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    folder.write("table.csv", table.getvalue())
    left = num - len(members)
    text = runs.ReportText(
        title=f"equistein sweep: {' '.join(described['arguments'])}",
        lead=f"All combinations of {', '.join(described['over'])}. A row is all runs "
        "that differ in the seed alone; table.csv has each of them.",
        unfinished=f"{left} of {num} runs are not finished." if left else "",
    )
    report, path = runs.write_report(folder, text), folder.path / "table.csv"
    paths = {"folder": folder.path, "report": report, "table": path}
    answer(f"Report: {report}\nTable: {path}", **paths)
