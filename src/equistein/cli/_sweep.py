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

from equistein._progress import progress_bar
from equistein.cli._fit import default_folder
from equistein.cli._output import answer, say
from equistein.cli._signals import in_order, INTERRUPTED
from equistein.runs import (
    FLOOR,
    ReportText,
    RunFolder,
    summarize,
    UserError,
    write_environment,
    write_report,
    write_text,
)

_FINISHED = "finished.json"
_MOST = 100_000  # runs of a sweep
_MINUTES = 7 * 24 * 60  # that a run may take
_SECONDS = 0.5  # between two looks at the jobs
_USAGE = (
    "A sweep needs a command first: equistein sweep fit DATA [its options] --over "
    "width=32,64, or equistein sweep -m MODULE [its options] --over seed=0..9"
)


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
        """Return the sweep that the words describe; other options are the command's."""
        name = next((i for i, word in enumerate(words) if word == "--over"), len(words))
        first, rest = list(words[:name]), list(words[name:])
        if first[:1] in (["-h"], ["--help"]) or not first:
            first, rest = [], [*first, *rest]
        own = {f"--{f.name.replace('_', '-')}" for f in dataclasses.fields(cls)}
        unknown = [w for w in rest if w.startswith("--") and w.split("=")[0] not in own]
        if unknown and unknown[0] != "--help":
            raise UserError(f"{unknown[0]}: give options of the command before --over.")
        sweep = tyro.cli(cls, args=rest, prog="equistein sweep")
        return dataclasses.replace(sweep, command=tuple(first))

    def execute(self) -> int:
        """Make the folder, and run."""
        if self.workers is not None and self.workers < 1:
            raise UserError(f"--workers must be at least 1, but got {self.workers}.")
        if self.command[:1] not in (("fit",), ("-m",)):
            raise UserError(_USAGE)
        settings = combinations(self.over)
        _executor(pathlib.Path(), self.cluster, self.cluster_options)
        if self.dry_run:
            names = [
                "; ".join(f"{k}={v}" for k, v in each.items()) for each in settings
            ]
            answer(f"{len(names)} runs: {' | '.join(names)}. Nothing is written.",
                   runs=names)  # fmt: skip
            return 0
        folder = RunFolder.create(self.out or default_folder("sweep"))
        described = {
            "command": "sweep", "arguments": self.command, "over": self.over,
            "workers": self.workers or os.cpu_count(), "cluster": self.cluster,
            "cluster_options": self.cluster_options,
        }  # fmt: skip
        folder.write_json("config.json", described)
        write_environment(folder)
        return run_members(folder)


def combinations(over: Sequence[str]) -> list[dict[str, str]]:
    """Return the settings of all runs, from `option=1,2,3` or `option=0..19` each.

    Raises:
        UserError: If one is not written so, or there are too many.
    """
    swept: dict[str, list[str]] = {}
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
    if not swept:
        raise UserError("A sweep needs what it is over, such as --over seed=0..19.")
    if math.prod(map(len, swept.values())) > _MOST:
        raise UserError(f"A sweep has at most {_MOST} runs: make several sweeps.")
    rows = itertools.product(*swept.values())
    return [dict(zip(swept, row, strict=True)) for row in rows]


def _values(part: str) -> list[str]:
    numbers = re.fullmatch(r"(-?\d+)\.\.(-?\d+)", part)
    if numbers is None:
        return [part]
    begin, end = map(int, numbers.groups())
    return list(map(str, range(begin, min(end, begin + _MOST) + 1))) or [""]


def run_members(folder: RunFolder) -> int:
    """Do the runs of a sweep that are not finished, and write table and report.

    Raises:
        UserError: If another process works in the folder, or submitit is missing.
    """
    folder.hold()
    try:
        with in_order():
            failed = _run_members(folder)
    except KeyboardInterrupt:
        print(f"\nStopped. Continue with\n  equistein resume {folder.path}",
              file=sys.stderr)  # fmt: skip
        return INTERRUPTED
    finally:
        folder.release()
    return 1 if failed else 0


def _run_members(folder: RunFolder) -> list[str]:
    """Return the names of the runs that failed."""
    described = folder.read_json("config.json")
    try:
        settings = combinations(described["over"])
        workers, cluster = int(described["workers"]), str(described["cluster"])
        arguments, options = described["arguments"], described["cluster_options"]
    except (KeyError, TypeError, ValueError) as error:
        message = f"{folder.path / 'config.json'} cannot be resumed: {error!r}."
        raise UserError(message) from None
    members = {f"{i:04d}": each for i, each in enumerate(settings)}
    finished = []
    if folder.has(_FINISHED):
        finished = list(folder.read_json(_FINISHED)["finished"])
    waiting = [name for name in members if name not in finished]
    say(f"{len(members)} runs, {len(finished)} of them finished before")
    executor = _executor(folder.path / "jobs", cluster, options)
    running: dict[str, Any] = {}
    failed: list[str] = []
    bar = progress_bar(total=len(waiting), unit="run", desc="")
    try:
        with bar:
            while waiting or running:
                while waiting and len(running) < workers:
                    name = waiting.pop(0)
                    words = _words(arguments, members[name], folder, name)
                    running[name] = executor.submit(subprocess.call, words)
                time.sleep(_SECONDS)
                for name in [name for name, job in running.items() if job.done()]:
                    if _status(running.pop(name)) == 0:
                        finished.append(name)
                        folder.write_json(_FINISHED, {"finished": finished})
                    else:
                        failed.append(name)
                    bar.update()
    finally:
        for job in running.values():  # where the sweep was stopped
            job.cancel()
    done = {name: members[name] for name in members if name in finished}
    if done:
        _write_results(folder, described, done, len(members))
    for name in failed:
        print(f"equistein: run {name} failed: see {folder.path / 'jobs'}.",
              file=sys.stderr)  # fmt: skip
    return failed


def _executor(path: pathlib.Path, cluster: str, options: Sequence[str]) -> Any:
    """Return what submits jobs.

    Raises:
        UserError: If submitit is missing, or does not know an option.
    """
    try:
        import submitit
    except ImportError:
        raise UserError(
            "A sweep needs submitit: pip install 'equistein[sweep]'."
        ) from None
    try:
        executor = submitit.AutoExecutor(folder=str(path), cluster=cluster)
        pairs = (option.partition("=") for option in options)
        parameters = {key: int(v) if v.isdecimal() else v for key, _, v in pairs}
        executor.update_parameters(**({"timeout_min": _MINUTES} | parameters))
    except (NameError, RuntimeError, TypeError, ValueError) as error:
        raise UserError(f"submitit cannot use `--cluster {cluster}`: {error}") from None
    return executor


def _words(
    arguments: Sequence[str],
    settings: Mapping[str, str],
    folder: RunFolder,
    name: str,
) -> list[str]:
    """Return the command line that begins a run of the sweep, or continues it."""
    path = folder.path.absolute() / "members" / name
    options = [f"--{k.replace('_', '-')}={v}" for k, v in settings.items()]
    if arguments[0] == "-m":
        return [sys.executable, *arguments, *options, f"--out={path}"]
    command = [sys.executable, "-m", "equistein"]
    if (path / "config.json").is_file():
        return [*command, "resume", str(path)]
    return [*command, *arguments, *options, f"--out={path}"]


def _status(job: Any) -> int:
    """Return the exit status of a job that has ended."""
    try:
        return job.result()
    except Exception:  # submitit's own, or what ended the job
        return 1


def _write_results(
    folder: RunFolder,
    described: Mapping[str, Any],
    members: Mapping[str, Mapping[str, str]],
    num: int,
) -> None:
    """Write metrics.json, table.csv and the report of all runs that are finished.

    Runs that differ in the seed alone are one row, with their spread.
    """
    pooled: dict[str, dict[str, list]] = {}
    lines: list[dict[str, Any]] = []
    about: dict[str, Any] = {}
    for name, settings in members.items():
        member = RunFolder.open(folder.path / "members" / name)
        about |= member.read_json("metrics.json").get("about", {})
        others = " ".join(f"{k}={v}" for k, v in settings.items() if k != "seed")
        for entry, metrics in member.read_json("per_seed.json").items():
            row = f"{entry} {others}".strip()
            for metric, values in metrics.items():
                numbers = [math.nan if v is None else v for v in values]
                pooled.setdefault(row, {}).setdefault(metric, []).extend(numbers)
            for index in range(max(map(len, metrics.values()), default=0)):
                numbers = {k: v[index] for k, v in metrics.items() if index < len(v)}
                line = {"run": name, "entry": entry, "seed_index": index}
                lines.append(line | dict(settings) | numbers)
    rows = {
        row: summarize({metric: np.array(v) for metric, v in metrics.items()})
        for row, metrics in pooled.items()
    }
    floors = [row for row in rows if row.split(" ")[0] == FLOOR]
    floor = rows.pop(floors[0]) if len(floors) == 1 else {}
    folder.write_json("metrics.json", {"entries": rows, "floor": floor, "about": about})
    table = io.StringIO()
    columns = dict.fromkeys(key for line in lines for key in line)
    writer = csv.DictWriter(table, list(columns), lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    folder.write("table.csv", table.getvalue())
    write_text(
        folder,
        ReportText(
            title=f"equistein sweep: {' '.join(described['arguments'])}",
            lead=f"Runs for all combinations of {', '.join(described['over'])}. A row "
            "is all runs that differ in the seed alone; table.csv has each of them, "
            "members/ their own reports.",
            unfinished=f"{num - len(members)} of {num} runs are not finished."
            if len(members) < num
            else "",
        ),
    )
    report, path = write_report(folder), folder.path / "table.csv"
    answer(f"Report: {report}\nTable: {path}",
           folder=folder.path, report=report, table=path)  # fmt: skip
