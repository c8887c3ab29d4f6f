"""`equistein sweep`: a run or a fit for each combination of some settings."""

import dataclasses
import functools
import os
import pathlib
import sys
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import tyro

from equistein._numbers import is_integer
from equistein._progress import progress_bar
from equistein.cli._given import given
from equistein.cli._output import answer, say
from equistein.cli._parse import parsed
from equistein.cli._run import default_folder
from equistein.cli._signals import in_order, INTERRUPTED
from equistein.cli._sweep_time import sweep_time
from equistein.cli._words import words_of_sweep
from equistein.cli._workers import executor_of, last_lines, log_of, run_here, run_jobs
from equistein.runs import (
    Member,
    members,
    RunFolder,
    UserError,
    write_environment,
    write_parts,
    write_report,
    write_sweep_results,
)

_FINISHED = "finished.json"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Sweep:
    """Run an experiment, or a fit, for each combination of some settings.

    equistein sweep NAME|fit [its arguments] --over seed=0..19 --over bandwidth=.1,.2

    One report and one table are made of all; where seeds are swept, each run has one.
    A sweep that was stopped goes on with `equistein resume`.

    Attributes:
        over: A field and its values, such as seed=0..19; may be repeated.
        workers: Runs at a time, each on its part of the processors; by default one for
            each processor.
        out: The folder of the sweep, new or empty; by default one under runs.
        cluster: Where runs go: here, or to Slurm by the package submitit.
        cluster_options: What submitit is told, such as timeout_min=60
            slurm_partition=gpu.
        dry_run: Check every value, tell the runs and an estimate of their time, but run
            and write nothing.
        command: What each run is, without what is swept.
    """

    over: Annotated[tuple[str, ...], tyro.conf.UseAppendAction] = ()
    workers: int | None = None
    out: pathlib.Path | None = None
    cluster: Literal["here", "slurm", "local"] = "here"
    cluster_options: tuple[str, ...] = ()
    dry_run: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    command: tyro.conf.Suppress[tuple[str, ...]] = ()

    def execute(self) -> int:
        """Check every value, make the folder, and run."""
        number = self.workers
        if number is not None and number < 1:
            raise UserError(f"--workers must be at least 1, but got {number}.")
        if self.cluster != "here":
            executor_of(pathlib.Path(), self.cluster, self.cluster_options)
        found = members(self.over)
        _check(self.command, found)
        if self.dry_run:
            return self.tell_runs(found)
        folder = RunFolder.create(self.out or default_folder("sweep"))
        described = {
            "command": "sweep",
            "arguments": list(self.command),
            "over": list(self.over),
            "workers": self.workers,
            "cluster": self.cluster,
            "cluster_options": list(self.cluster_options),
        }
        folder.write_config(described)
        write_environment(folder)
        return go_on(folder, described)

    def tell_runs(self, found: Sequence[Member]) -> int:
        """Print which runs there would be, and how long they would take."""
        called = functools.partial(_called, self.command)
        time = sweep_time(called, found, self.workers)
        names = [member.name for member in found]
        told = time or "How long a run takes nobody has measured."
        answer(
            f"{len(names)} runs: {'; '.join(names)}. {told} Nothing is written.",
            runs=names, seconds=time and time.seconds, seconds_each=time and time.each,
        )  # fmt: skip
        return 0


def own_arguments(arguments: Sequence[str]) -> tuple[list[str], tuple[str, ...]]:
    """Return the arguments of a sweep itself, and those of what it runs."""
    flags = {f"--{field.name.replace('_', '-')}" for field in dataclasses.fields(Sweep)}
    own, rest, words = [], [], list(arguments)
    while words:
        word = words.pop(0)
        if word in ("-h", "--help", "--dry-run"):
            own.append(word)
        elif word.partition("=")[0].replace("_", "-") in flags:
            own.append(word)
            several = "--cluster-options" in word.replace("_", "-")
            while words and "=" not in word and not words[0].startswith("-"):
                own.append(words.pop(0))
                if not several:
                    break
        else:
            rest.append(word)
    return own, tuple(rest)


def go_on(folder: RunFolder, described: Mapping[str, Any]) -> int:
    """Do the runs of a sweep that are not finished, and write table and report.

    Raises:
        UserError: If its description does not do, or another process works in it.
    """
    folder.hold()
    try:
        with in_order():
            return _go_on(folder, described)
    finally:
        folder.release()


def _go_on(folder: RunFolder, described: Mapping[str, Any]) -> int:
    command = [str(word) for word in described.get("arguments", ())]
    found = members([str(text) for text in described.get("over", ())])
    _check(command, found)
    names = {_folder_name(index, member): member for index, member in enumerate(found)}
    finished = _finished(folder)
    todo = [name for name in names if name not in finished]
    done = len(names) - len(todo)
    say(f"{len(names)} runs, {done} of them done before")
    begin = functools.partial(_begun, folder, command, names)
    cluster = str(described.get("cluster", "here"))
    workers = described.get("workers") or os.cpu_count() or 1
    failed = []
    bar = progress_bar(initial=done, total=len(names), unit="run", desc="")

    def show_runs() -> None:
        going = [name for name in todo if name not in (*finished, *failed)]
        bar.tell(last_lines(folder, going))

    try:
        if cluster == "here":
            results = run_here(folder, begin, todo, workers, show_runs)
        else:
            options = [str(text) for text in described.get("cluster_options", ())]
            executor = executor_of(folder.path / "jobs", cluster, options)
            executor.update_parameters(slurm_array_parallelism=workers)
            results = run_jobs(executor, begin, todo)
        with bar:
            for name, status in results:
                bar.update(1)
                if status == 0:
                    finished.append(name)
                    folder.write_json(_FINISHED, {"finished": finished})
                else:
                    failed.append(name)
    except KeyboardInterrupt:
        told = f"\nStopped. Go on with\n  equistein resume {folder.path}"
        print(told, file=sys.stderr)
        return INTERRUPTED
    results = {
        name: (names[name], per_seed_of(RunFolder.open(folder.path / "members" / name)))
        for name in names
        if name in finished
    }
    if results:
        write_sweep_results(folder, results)
        write_parts(folder, list(names), list(results))
        report = write_report(folder, words_of_sweep(described))
        table = folder.path / "table.csv"
        answer(
            f"Report: {report}\nTable: {table}",
            folder=folder.path, report=report, table=table, failed=failed,
        )  # fmt: skip
    for name in failed:
        log = log_of(folder, name) if cluster == "here" else folder.path / "jobs"
        print(f"equistein: {name} failed; it says why in {log}.", file=sys.stderr)
    return 1 if failed else 0


def _check(command: Sequence[str], found: Sequence[Member]) -> None:
    """Parse the command with every value once.

    Raises:
        UserError: If it is no run and no fit, or one of them does not do.
        SystemExit: If a field is unknown, with a message.
    """
    if not command or command[0].startswith("-"):
        raise UserError(
            "A sweep needs an experiment or `fit` first: equistein sweep c4-gaussians "
            "--over seed=0..19."
        )
    seen: set[tuple[str, str]] = set()
    for member in found:
        if not seen.issuperset(member.values.items()):
            seen.update(member.values.items())
            parsed(_called(command, member))


def _called(command: Sequence[str], member: Member) -> list[str]:
    """Return the whole command of one run, which has the seeds that are swept alone."""
    flags = [
        f"--{field.replace('_', '-')}={value}" for field, value in member.values.items()
    ]
    if command[0] == "fit":
        return [*command, *flags]
    if "seed" in member.values and given(command, "num-seeds") is None:
        flags.append("--num-seeds=1")
    return ["run", *command, *flags]


def _folder_name(index: int, member: Member) -> str:
    plain = "".join(c if c.isalnum() or c in "=.-_" else "," for c in member.name)
    return f"{index:04d}-{plain}"[:100]


def _begun(
    folder: RunFolder, command: Sequence[str], names: Mapping[str, Member], name: str
) -> list[str]:
    """Return the arguments that begin a run of the sweep, or go on with it."""
    path = folder.path / "members" / name
    if (path / "config.json").is_file():
        return ["resume", str(path)]
    return [*_called(command, names[name]), f"--out={path}"]


def _finished(folder: RunFolder) -> list[str]:
    if not (folder.path / _FINISHED).is_file():
        return []
    return list(map(str, folder.read_json(_FINISHED).get("finished", [])))


def per_seed_of(folder: RunFolder) -> dict[str, Any]:
    """Return the numbers of a finished run: for each model and metric one a seed.

    Raises:
        UserError: If its per_seed.json is missing or damaged.
    """
    found = folder.read_json("per_seed.json")
    metrics = [row for row in found.values() if isinstance(row, dict)]
    columns = [column for row in metrics for column in row.values()]
    numbers = [x for column in columns if isinstance(column, list) for x in column]
    good = len(metrics) == len(found)
    good = good and all(isinstance(column, list) for column in columns)
    if not good or not all(x is None or _is_float(x) for x in numbers):
        path = folder.path / "per_seed.json"
        raise UserError(f"{path} is damaged: it should hold a number for each seed.")
    return found


def _is_float(value: Any) -> bool:
    return isinstance(value, float) or (is_integer(value) and abs(value) < 2**63)
