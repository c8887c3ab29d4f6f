"""Several processes that work as one: `--distributed`."""

import dataclasses
import hashlib
import os
import pathlib
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Sequence

import jax
import numpy as np

from equistein.cli._given import given
from equistein.runs import RunFolder, UserError

_PATIENCE = 60  # seconds to find each other
_HEARTBEAT = 40  # seconds until a process that is silent counts as lost
_LONG = 7 * 24 * 3600  # seconds that finished processes wait for the first


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
    if "--distributed" not in arguments or arguments[0] not in ("fit", "resume"):
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
        if own:
            _wait_for(str(coordinator))
        options = {"num_processes": number, "process_id": own}
    else:
        options = {}
    try:
        jax.distributed.initialize(
            coordinator, initialization_timeout=_PATIENCE,
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


def agree(what: str, content: bytes) -> None:
    """Raise `UserError` in all processes unless all of them have the same."""
    if jax.process_count() == 1:
        return
    from jax.experimental import multihost_utils

    own = np.frombuffer(hashlib.sha256(content).digest(), np.uint8)
    every = np.asarray(multihost_utils.process_allgather(own.astype(np.int32)))
    different = [i for i, other in enumerate(every) if np.any(other != every[0])]
    if different:
        raise UserError(
            f"Processes {', '.join(map(str, different))} have other {what} than "
            "process 0: start all with the same."
        )


def created(path: pathlib.Path) -> RunFolder:
    """Return the new run folder; of any process but the first one that is dropped."""
    if jax.process_index() == 0:
        return RunFolder.create(path)
    return RunFolder.create(pathlib.Path(tempfile.mkdtemp(prefix="equistein-")))


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


def _wait_for(coordinator: str) -> None:
    host, _, port = coordinator.rpartition(":")
    if not host or not port.isdecimal():
        raise UserError(
            f"--coordinator must be HOST:PORT, such as node1:12345, but got "
            f"{coordinator!r}."
        )
    end = time.monotonic() + _PATIENCE
    while time.monotonic() < end:
        try:
            socket.create_connection((host, int(port)), timeout=2).close()
        except OSError:
            time.sleep(0.5)
        else:
            return
    raise UserError(
        f"Nobody answers at --coordinator {coordinator} for {_PATIENCE} seconds: start "
        "process 0 there, and let the others reach it."
    )
