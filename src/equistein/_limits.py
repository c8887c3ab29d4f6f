"""Bounds on memory, checked before the work begins."""

import contextlib
import math
import os
import pathlib
from typing import Any

VARIABLE = "EQUISTEIN_MAX_BYTES"
"""The environment variable that raises the bound on what is kept in memory."""

JSON_GROWTH = 32
"""How many times its own size a text of JSON becomes in memory, at most."""

_BYTES = 2**29
_SAMPLE = 16  # bytes of a number of a sample, while its batches are joined
_GUESS = 2**33  # bytes of a machine that does not report its memory
_CONTAINER = pathlib.Path("/sys/fs/cgroup/memory.max")


class LimitError(ValueError):
    """Something would need more memory than is allowed; the message says how much."""


def max_bytes() -> int:
    """Return how much memory one thing may need: `$EQUISTEIN_MAX_BYTES`, or 512 MiB."""
    text = os.environ.get(VARIABLE) or str(_BYTES)
    if not text.isdecimal():
        raise LimitError(f"${VARIABLE} must be a number of bytes, but is {text!r}.")
    return int(text)


def check_read_size(what: str, needed: int, remedy: str = "") -> None:
    """Raise `LimitError` unless data to read fit into the memory they are allowed.

    `needed` are bytes; the remedy is what to do instead, such as "record less".
    """
    _check(what, needed, remedy, max_bytes())


def check_memory(what: str, needed: int, remedy: str = "") -> None:
    """Raise `LimitError` unless arrays about to be made fit into memory.

    They may need a quarter of the machine's memory: these sizes come from the user, not
    from a file.
    """
    most = max_bytes() if os.environ.get(VARIABLE) else _machine() // 4
    _check(what, needed, remedy, most)


def check_sample_memory(num: Any, shape: tuple[int, ...]) -> None:
    """Raise `LimitError` unless a number of samples of some shape fits into memory."""
    if isinstance(num, int) and num > 0:
        needed = _SAMPLE * num * max(1, math.prod(shape))
        check_memory(f"Drawing {num} samples", needed, "draw fewer at a time")


def _check(what: str, needed: int, remedy: str, most: int) -> None:
    if needed > most:
        remedy = remedy and f"{remedy}, or "
        raise LimitError(
            f"{what} would need about {needed / 2**30:.3g} GiB of memory, and at most "
            f"{most / 2**30:.3g} GiB are allowed: {remedy}set {VARIABLE} to {needed} "
            "or more if the machine has them."
        )


def _machine() -> int:
    """Return the bytes of memory of the machine or the container."""
    sizes = [_GUESS]
    with contextlib.suppress(AttributeError, OSError, ValueError):  # as on Windows
        sizes = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    with contextlib.suppress(OSError, ValueError):
        sizes.append(int(_CONTAINER.read_text()))
    return min(sizes)
