"""Several processes that work as one: `--distributed`."""

import dataclasses
import importlib.metadata
import os
import pathlib
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import cast, TypeVar

import jax

from equistein._sharding import disagreeing, sent
from equistein.cli._given import given
from equistein.cli._meeting import meet, PATIENCE
from equistein.runs import RunFolder, UserError

_HEARTBEAT = 40  # seconds until a process that is silent counts as lost
_WORD = 2  # seconds in which the others say why they end too
_LONG = 7 * 24 * 3600  # seconds that finished processes wait for the first

Result = TypeVar("Result")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Hosts:
    """How several processes, each with its devices, find each other.

    The same command is started for each of them; the first one writes the run folder.

    Attributes:
        distributed: This is one of several processes. Those that Slurm, Kubernetes or a
            pod of TPUs began find each other; others need the next three.
        coordinator: The address of the first process, host:port.
        num_processes: The number of processes.
        process_id: The number of this one, from 0.
    """

    distributed: bool = False
    coordinator: str | None = None
    num_processes: int | None = None
    process_id: int | None = None


def join(arguments: Sequence[str]) -> None:
    """Find the other processes, if the arguments say that there are some.

    Raises:
        UserError: If they cannot be found within a minute, or have other arguments.
    """
    if "--distributed" not in arguments or arguments[0] not in ("run", "fit", "resume"):
        return  # which the parser tells of
    words = [given(arguments, name) for name in ("num-processes", "process-id")]
    coordinator = given(arguments, "coordinator")
    named = [coordinator, *words]
    if any(word is not None for word in named):
        if None in named or not all(str(word).isdecimal() for word in words):
            raise UserError(
                "--distributed needs --coordinator HOST:PORT, --num-processes N and "
                "--process-id I together, or none of them where Slurm, Kubernetes or "
                "a pod tells."
            )
        number, own = map(int, words)  # type: ignore[arg-type]
        if not own < number:
            raise UserError(
                f"--process-id must be below {number}, the --num-processes, but is "
                f"{own}."
            )
        meet(str(coordinator), number, own)
        options = {"num_processes": number, "process_id": own}
    else:
        options = {}
    try:
        jax.distributed.initialize(
            coordinator, initialization_timeout=PATIENCE,
            heartbeat_timeout_seconds=_HEARTBEAT, shutdown_timeout_seconds=_LONG,
            **options,
        )  # fmt: skip
    except (RuntimeError, ValueError) as error:
        raise UserError(
            f"The other processes were not found: {str(error).splitlines()[0]} Start "
            "as many as --num-processes within a minute, each with its --process-id."
        ) from None
    if jax.process_index():
        sys.stdout = open(os.devnull, "w")  # the first one tells
    others = [
        word for i, word in enumerate(arguments)
        if not word.startswith("--process-id") and arguments[i - 1] != "--process-id"
    ]  # fmt: skip
    agree("arguments", "\n".join(others).encode())
    own_version = importlib.metadata.version("equistein")
    versions = own_version, jax.__version__, jax.config.read("jax_enable_x64")
    agree("versions of equistein or JAX", repr(versions).encode())


def agree(what: str, content: bytes) -> None:
    """Raise `UserError` in all processes unless all of them have the same."""
    different = disagreeing(content)
    if different:
        raise UserError(
            f"Processes {', '.join(map(str, different))} have other {what} than "
            "process 0: start all with the same."
        )


def together(work: Callable[[], Result]) -> Result:
    """Do what each process does by itself; if one of them fails, all end.

    Raises:
        UserError: If the work fails, here or in another process, with its reason.
    """
    result, told = None, b""
    try:
        result = work()
    except (UserError, OSError, ValueError) as error:
        told = str(error).encode() or b"an error without a word"
    for sender in range(jax.process_count()):
        found = sent(told, sender).decode()
        if found:
            own = sender == jax.process_index()
            raise UserError(found if own else f"Process {sender}: {found}")
    return cast(Result, result)


def leave(status: int) -> None:
    """End this process of several at once, without waiting for the others."""
    if status and jax.distributed.is_initialized():
        sys.stdout.flush()
        sys.stderr.flush()
        time.sleep(_WORD if jax.process_index() == 0 else 0)
        os._exit(status)


def own_path(path: pathlib.Path) -> pathlib.Path:
    """Return where a new run folder is; of any process but the first one to drop."""
    if jax.process_index() == 0:
        return path
    return pathlib.Path(tempfile.mkdtemp(prefix="equistein-"))


def reopened(folder: RunFolder) -> RunFolder:
    """Return a run folder to go on in; of any process but the first a copy."""
    if jax.process_count() == 1:
        return folder
    if jax.process_index():
        copy = pathlib.Path(tempfile.mkdtemp(prefix="equistein-")) / "run"
        shutil.copytree(folder.path, copy)
        folder = RunFolder.open(copy)
    agree("files in the run folder", (folder.path / "config.json").read_bytes())
    return folder


def drop(folder: RunFolder) -> None:
    """Remove a run folder that is not the first process's."""
    if jax.process_index():
        shutil.rmtree(folder.path, ignore_errors=True)
