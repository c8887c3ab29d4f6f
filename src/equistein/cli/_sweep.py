"""`equistein sweep`: a run or a fit for each combination of some settings."""

import concurrent.futures
import dataclasses
import functools
import os
import pathlib
import queue
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal

import tyro

from equistein._progress import progress_bar
from equistein.cli._attempt import INTERRUPTED
from equistein.cli._given import given
from equistein.cli._run import default_folder
from equistein.cli._words import words_of_sweep
from equistein.runs import (
    Member,
    members,
    RunFolder,
    UserError,
    write_environment,
    write_report,
    write_sweep_results,
)

_FINISHED = "finished.json"
_CHILD = """
import os, sys, threading, time
parent, cores = int(sys.argv.pop(1)), sys.argv.pop(1)
if cores and hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, map(int, cores.split(",")))
def watch():
    while not parent or os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)
threading.Thread(target=watch, daemon=True).start()
from equistein.cli import main
sys.exit(main(sys.argv[1:]))
"""  # a run does not outlive its sweep, which begins it again when it goes on
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


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
        command: What each run is, without what is swept.
    """

    over: Annotated[tuple[str, ...], tyro.conf.UseAppendAction] = ()
    workers: int | None = None
    out: pathlib.Path | None = None
    cluster: Literal["here", "slurm", "local"] = "here"
    cluster_options: tuple[str, ...] = ()
    command: tyro.conf.Suppress[tuple[str, ...]] = ()

    def execute(self) -> int:
        """Check every value, make the folder, and run."""
        number = self.workers
        if number is not None and number < 1:
            raise UserError(f"--workers must be at least 1, but got {number}.")
        if self.cluster != "here":
            _executor(pathlib.Path(), self.cluster, self.cluster_options)
        _check(self.command, members(self.over))
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


def own_arguments(arguments: Sequence[str]) -> tuple[list[str], tuple[str, ...]]:
    """Return the arguments of a sweep itself, and those of what it runs."""
    flags = {f"--{field.name.replace('_', '-')}" for field in dataclasses.fields(Sweep)}
    own, rest, words = [], [], list(arguments)
    while words:
        word = words.pop(0)
        if word in ("-h", "--help"):
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
        UserError: If its description does not do.
    """
    command = [str(word) for word in described.get("arguments", ())]
    found = members([str(text) for text in described.get("over", ())])
    _check(command, found)
    names = {_folder_name(index, member): member for index, member in enumerate(found)}
    finished = _finished(folder)
    todo = [name for name in names if name not in finished]
    done = len(names) - len(todo)
    print(f"{len(names)} runs, {done} of them done before", flush=True)
    begin = functools.partial(_begun, folder, command, names)
    cluster = str(described.get("cluster", "here"))
    workers = described.get("workers") or os.cpu_count() or 1
    failed = []
    try:
        if cluster == "here":
            results = _run_here(folder, begin, todo, workers)
        else:
            options = [str(text) for text in described.get("cluster_options", ())]
            executor = _executor(folder.path / "jobs", cluster, options)
            executor.update_parameters(slurm_array_parallelism=workers)
            results = _run_jobs(executor, begin, todo)
        bar = progress_bar(initial=done, total=len(names), unit="run", desc="")
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
        name: (names[name], _per_seed(folder, name))
        for name in names
        if name in finished
    }
    if results:
        write_sweep_results(folder, results)
        report = write_report(folder, words_of_sweep(described))
        print(f"Report: {report}\nTable: {folder.path / 'table.csv'}")
    for name in failed:
        log = _log(folder, name) if cluster == "here" else folder.path / "jobs"
        print(f"equistein: {name} failed; it says why in {log}.", file=sys.stderr)
    return 1 if failed else 0


def _check(command: Sequence[str], found: Sequence[Member]) -> None:
    """Parse the command with every value once.

    Raises:
        UserError: If it is no run and no fit, or one of them does not do.
        SystemExit: If a field is unknown, with a message.
    """
    from equistein.cli._main import parsed  # which knows this command too

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


def _run_here(
    folder: RunFolder,
    begin: Callable[[str], list[str]],
    todo: Sequence[str],
    workers: int,
) -> Any:
    """Yield the name and the exit status of each run as it ends."""
    workers = min(workers, max(1, len(todo)))
    affinity = getattr(os, "sched_getaffinity", lambda _: range(os.cpu_count() or 1))
    cores = sorted(affinity(0))
    slots: queue.Queue[list[int]] = queue.Queue()
    running: set[subprocess.Popen] = set()
    for worker in range(workers):
        slots.put(cores[worker::workers] or [cores[worker % len(cores)]])

    def run(name: str) -> tuple[str, int]:
        own = slots.get()
        try:
            return name, _run_child(begin(name), own, _log(folder, name), running)
        finally:
            slots.put(own)

    pool = concurrent.futures.ThreadPoolExecutor(workers)
    try:
        jobs = [pool.submit(run, name) for name in todo]
        for job in concurrent.futures.as_completed(jobs):
            yield job.result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        for child in tuple(running):  # where the sweep itself was stopped
            child.send_signal(signal.SIGINT)
        pool.shutdown(wait=True)


def _run_child(
    arguments: list[str],
    cores: list[int],
    log: pathlib.Path,
    running: set[subprocess.Popen],
) -> int:
    """Run a command in a process of its own; return its exit status."""
    log.parent.mkdir(exist_ok=True)
    limits = dict.fromkeys(_THREADS, str(len(cores)))
    child = [sys.executable, "-c", _CHILD, str(os.getpid()), ",".join(map(str, cores))]
    with open(log, "a", encoding="utf-8") as told:
        print(f"$ equistein {shlex.join(arguments)}", file=told, flush=True)
        process = subprocess.Popen(
            [*child, *arguments], stdout=told, stderr=told, stdin=subprocess.DEVNULL,
            env=os.environ | limits,
        )  # fmt: skip
        running.add(process)
        try:
            return process.wait()
        finally:
            running.discard(process)


def _executor(path: pathlib.Path, cluster: str, options: Sequence[str]) -> Any:
    """Return what submits jobs.

    Raises:
        UserError: If submitit is missing, or does not know an option.
    """
    try:
        import submitit  # type: ignore[import-not-found]
    except ImportError:
        raise UserError(
            f"--cluster {cluster} needs submitit: pip install 'equistein[slurm]'."
        ) from None
    try:
        executor = submitit.AutoExecutor(folder=str(path), cluster=cluster)
        pairs = (option.partition("=") for option in options)
        given = {key: int(v) if v.isdecimal() else v for key, _, v in pairs}
        executor.update_parameters(**given)
    except (NameError, RuntimeError, TypeError, ValueError) as error:
        raise UserError(f"submitit cannot use `--cluster {cluster}`: {error}") from None
    return executor


def _run_jobs(
    executor: Any, begin: Callable[[str], list[str]], todo: Sequence[str]
) -> Any:
    """Yield the name and the exit status of each job as it ends."""
    jobs = {}
    with executor.batch():
        for name in todo:
            child = [sys.executable, "-c", _CHILD, "0", "", *begin(name)]
            jobs[executor.submit(subprocess.call, child)] = name
    for job, name in jobs.items():
        try:
            yield name, job.result()
        except Exception:  # submitit's own, or what ended the job
            yield name, 1


def _log(folder: RunFolder, name: str) -> pathlib.Path:
    return folder.path / "logs" / f"{name}.txt"


def _finished(folder: RunFolder) -> list[str]:
    if not (folder.path / _FINISHED).is_file():
        return []
    return list(map(str, folder.read_json(_FINISHED).get("finished", [])))


def _per_seed(folder: RunFolder, name: str) -> dict[str, Any]:
    return RunFolder.open(folder.path / "members" / name).read_json("per_seed.json")
