"""The one place that bounds memory and work, before they begin."""

import contextlib
import math
import os
import pathlib
from typing import Any

VARIABLE = "EQUISTEIN_MAX_BYTES"
"""The environment variable that raises the bound on what is kept in memory."""

HOURS = "EQUISTEIN_MAX_HOURS"
"""The environment variable that raises the bound on what is computed."""

_BYTES = 2**29
_SAMPLE = 16  # bytes of a number of a sample, while its batches are joined
_YEAR = 24 * 365  # hours
_GUESS = 2**33  # bytes of a machine that does not tell
_CONTAINER = pathlib.Path("/sys/fs/cgroup/memory.max")
JSON_GROWTH = 32
"""How many times its own size a text of JSON becomes in memory, at most."""

MOST = 10**9
"""The largest whole number that an argument may be: steps are counted in 32 bits."""

WHY_MOST = "counts are kept in 32 bits, and no setting raises that: split the work"
"""Why no variable raises that bound."""


class LimitError(ValueError):
    """Something would need more memory than is allowed; the message tells how much."""


def max_bytes() -> int:
    """Return how much memory one thing may need: `$EQUISTEIN_MAX_BYTES`, or 512 MiB.

    Raises:
        LimitError: If the variable is no whole number.
    """
    return _told(VARIABLE) or _BYTES


def check_bytes(what: str, needed: int, remedy: str = "") -> None:
    """Raise unless something fits into the memory that it may need.

    Args:
        what: What it is, such as "The history of `run`".
        needed: The bytes it will need, about.
        remedy: What to do instead, in a sentence's beginning, such as "record less".

    Raises:
        LimitError: If it does not, with an estimate and how to raise the bound.
    """
    _check(what, needed, remedy, max_bytes())


def check_made(what: str, needed: int, remedy: str = "") -> None:
    """Raise unless what is about to be made fits into memory, as `check_bytes` does.

    It may need a quarter of the machine's memory, where `$EQUISTEIN_MAX_BYTES` does not
    say otherwise: nobody but the user can ask for it.

    Raises:
        LimitError: If it does not fit, with an estimate and how to raise the bound.
    """
    _check(what, needed, remedy, max_bytes() if _told(VARIABLE) else _machine() // 4)


def check_drawn(num: Any, shape: tuple[int, ...]) -> None:
    """Raise unless a number of samples of some shape fits into memory.

    What is no positive number is left to who draws.

    Raises:
        LimitError: If they do not, with an estimate.
    """
    if isinstance(num, int) and num > 0:
        needed = _SAMPLE * num * max(1, math.prod(shape))
        check_made(f"Drawing {num} samples", needed, "draw fewer at a time")


def check_hours(what: str, seconds: int | float, remedy: str = "") -> None:
    """Raise unless a computation ends within the time that it may take: a year.

    Args:
        what: What it is, such as "Training".
        seconds: How long it takes, about.
        remedy: What to do instead, in a sentence's beginning.

    Raises:
        LimitError: If it does not, with an estimate and how to raise the bound.
    """
    most, hours = _told(HOURS) or _YEAR, seconds / 3600
    if hours > most:
        remedy = remedy and f"{remedy}, or "
        raise LimitError(
            f"{what} would take about {hours:.3g} hours, and at most {most} are begun: "
            f"{remedy}set {HOURS} to {math.ceil(hours)} or more if that is meant."
        )


def _told(variable: str) -> int:
    """Return the whole number that an environment variable is; 0 if it is not set."""
    told = os.environ.get(variable, "")
    if told and not told.isdecimal():
        unit = "hours" if variable == HOURS else "bytes"
        raise LimitError(f"${variable} must be a number of {unit}, but is {told!r}.")
    return int(told or 0)


def _machine() -> int:
    """Return the bytes of memory of the machine, or of the container that this is."""
    sizes = [_GUESS]
    with contextlib.suppress(AttributeError, OSError, ValueError):  # as on Windows
        sizes = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    with contextlib.suppress(OSError, ValueError):
        sizes.append(int(_CONTAINER.read_text()))
    return min(sizes)


def _check(what: str, needed: int, remedy: str, most: int) -> None:
    if needed > most:
        remedy = remedy and f"{remedy}, or "
        raise LimitError(
            f"{what} would need about {in_words(needed)} of memory, and at most "
            f"{in_words(most)} are taken: {remedy}set {VARIABLE} to "
            f"{needed} or more if the machine has them."
        )


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an error of Python, NumPy or JAX says that memory ran out."""
    return isinstance(error, MemoryError) or "RESOURCE_EXHAUSTED" in str(error)


def in_words(size: int | float) -> str:
    """Return a number of bytes, such as 1.5 GiB."""
    for unit in ("bytes", "KiB", "MiB", "GiB", "TiB"):
        if size < 1024:
            return f"{size:.4g} {unit}"
        size /= 1024
    return f"{size:.3g} PiB"
