"""Processes find each other before JAX begins, which would end them without a word."""

import socket
import struct
import time

from equistein.runs import UserError

PATIENCE = 60  # seconds to find each other
_LAST_WORD = b"+"  # all are there


def meet(coordinator: str, number: int, own: int) -> None:
    """Wait until all processes are there.

    Args:
        coordinator: The address of process 0, host:port.
        number: The number of processes.
        own: The number of this one.

    Raises:
        UserError: If they are not within a minute, or the address is none.
    """
    host, _, port = coordinator.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 2**16:
        raise UserError(
            f"--coordinator must be HOST:PORT, such as node1:12345, but got "
            f"{coordinator!r}."
        )
    if own == 0:
        _receive(int(port), number)
    else:
        _announce(host, int(port), own)


def _receive(port: int, number: int) -> None:
    """Wait for the others, and tell them when all are there."""
    end, there = time.monotonic() + PATIENCE, {}
    try:
        with socket.create_server(("", port), backlog=number) as door:
            while len(there) < number - 1 and (left := end - time.monotonic()) > 0:
                door.settimeout(left)
                guest, _ = door.accept()
                guest.settimeout(left)
                there[struct.unpack("!I", guest.recv(4))[0]] = guest
    except TimeoutError:
        pass
    except (OSError, struct.error) as error:
        raise UserError(
            f"Process 0 cannot be reached at port {port} of --coordinator: {error}. "
            "Choose another port."
        ) from None
    missing = sorted(set(range(1, number)) - set(there))
    for guest in there.values():
        if not missing:
            guest.sendall(_LAST_WORD)
        guest.close()
    if missing:
        raise UserError(
            f"Processes {', '.join(map(str, missing))} did not come within {PATIENCE} "
            "seconds: start as many as --num-processes, each with its --process-id."
        )


def _announce(host: str, port: int, own: int) -> None:
    """Tell process 0 that this one is there, and wait for its word."""
    end, told = time.monotonic() + PATIENCE, b""
    while not told and time.monotonic() < end:
        try:
            with socket.create_connection((host, port), timeout=2) as line:
                line.settimeout(max(1.0, end - time.monotonic()) + 5)
                line.sendall(struct.pack("!I", own))
                told = line.recv(1)
        except OSError:
            time.sleep(0.5)
            continue
        if not told:
            raise UserError(
                "Process 0 ended the meeting, for others did not come: start as many "
                "as --num-processes, each with its --process-id."
            )
    if not told:
        raise UserError(
            f"Nobody answers at --coordinator {host}:{port} for {PATIENCE} seconds: "
            "start process 0 there, and let the others reach it."
        )
