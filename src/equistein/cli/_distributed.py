"""Several processes that fit one model: `--distributed`."""

import dataclasses
import os
import sys

import jax

from equistein.runs import UserError

_PATIENCE = 60  # seconds to find each other
_HEARTBEAT = 40  # seconds until a process that is silent counts as lost


@dataclasses.dataclass(frozen=True, kw_only=True)
class Distributed:
    """How several processes, each with its devices, find each other.

    The same command is started for each of them, with the same --out in a folder that
    all of them see; the first one writes it.

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

    def join(self) -> None:
        """Find the other processes, if there are some.

        Raises:
            UserError: If they are not found within a minute.
        """
        if not self.distributed:
            return
        named = self.coordinator, self.num_processes, self.process_id
        if None in named and set(named) != {None}:
            raise UserError(
                "--distributed needs --coordinator HOST:PORT, --num-processes N and "
                "--process-id I together, or none of them where Slurm, Kubernetes or "
                "a pod sets them."
            )
        try:
            jax.distributed.initialize(
                *named, initialization_timeout=_PATIENCE,
                heartbeat_timeout_seconds=_HEARTBEAT,
            )  # fmt: skip
        except (RuntimeError, ValueError) as error:
            raise UserError(
                f"The other processes were not found: {str(error).splitlines()[0]} "
                "Start as many as --num-processes within a minute, each with its "
                "--process-id."
            ) from None
        if jax.process_index():
            sys.stdout = open(os.devnull, "w")  # the first one prints
