"""The processes, or jobs of a cluster, that do the runs of a sweep."""

import concurrent.futures
import os
import pathlib
import queue
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any

from equistein.runs import RunFolder, UserError

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
sys.exit(main())
"""  # a run does not outlive its sweep, which begins it again when it goes on
_SECONDS = 2.0  # between two looks at what the runs say
_TAIL, _SHOWN = 2_000, 60  # bytes of a log that are read, letters that are shown
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def run_here(
    folder: RunFolder,
    begin: Callable[[str], list[str]],
    todo: Sequence[str],
    workers: int,
    while_waiting: Callable[[], object],
) -> Any:
    """Yield the name and the exit status of each run as it ends.

    Args:
        folder: That of the sweep.
        begin: What returns the arguments of a run.
        todo: The names of the runs.
        workers: How many go at a time.
        while_waiting: What is called every few seconds in between.
    """
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
            return name, _run_child(begin(name), own, log_of(folder, name), running)
        finally:
            slots.put(own)

    pool = concurrent.futures.ThreadPoolExecutor(workers)
    try:
        jobs = [pool.submit(run, name) for name in todo]
        waiting = set(jobs)
        while waiting:
            done, waiting = concurrent.futures.wait(
                waiting, _SECONDS, return_when=concurrent.futures.FIRST_COMPLETED
            )
            while_waiting()
            yield from (job.result() for job in done)
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
            env=os.environ | limits, start_new_session=True,  # Ctrl-C is passed on once
        )  # fmt: skip
        running.add(process)
        try:
            return process.wait()
        finally:
            running.discard(process)


def executor_of(path: pathlib.Path, cluster: str, options: Sequence[str]) -> Any:
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


def run_jobs(
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


def last_lines(folder: RunFolder, names: Sequence[str]) -> str:
    """Return the last thing that each of some runs said, if it has begun."""
    told = []
    for name in names:
        try:
            with open(log_of(folder, name), "rb") as log:
                log.seek(max(0, log.seek(0, os.SEEK_END) - _TAIL))
                lines = log.read().decode("utf-8", "replace").split("\n")
        except OSError:
            continue
        said = [line.strip() for line in lines if line.strip()]
        if said and not said[-1].startswith("$ "):
            told.append(f"{name}: {said[-1][:_SHOWN]}")
    return "; ".join(told)


def log_of(folder: RunFolder, name: str) -> pathlib.Path:
    """Return where a run of a sweep prints to."""
    return folder.path / "logs" / f"{name}.txt"
