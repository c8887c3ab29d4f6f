"""The one place that bounds memory and work, before they begin."""

import os

VARIABLE = "EQUISTEIN_MAX_BYTES"
"""The environment variable that raises the bound on what is kept in memory."""

_BYTES = 2**29
JSON_GROWTH = 32
"""How many times its own size a text of JSON becomes in memory, at most."""

MOST = 10**9
"""The largest whole number that an argument may be."""


class LimitError(ValueError):
    """Something would need more memory than is allowed; the message tells how much."""


def max_bytes() -> int:
    """Return how much memory one thing may need: `$EQUISTEIN_MAX_BYTES`, or 512 MiB.

    Raises:
        LimitError: If the variable is no whole number.
    """
    told = os.environ.get(VARIABLE, "")
    if told and not told.isdecimal():
        raise LimitError(f"${VARIABLE} must be a number of bytes, but is {told!r}.")
    return int(told) if told else _BYTES


def check_bytes(what: str, needed: int, remedy: str = "") -> None:
    """Raise unless something fits into the memory that it may need.

    Args:
        what: What it is, such as "The history of `run`".
        needed: The bytes it will need, about.
        remedy: What to do instead, in a sentence's beginning, such as "record less".

    Raises:
        LimitError: If it does not, with an estimate and how to raise the bound.
    """
    most = max_bytes()
    if needed > most:
        remedy = remedy and f"{remedy}, or "
        raise LimitError(
            f"{what} would need about {in_words(needed)} of memory, and at most "
            f"{in_words(most)} are taken: {remedy}set {VARIABLE} to "
            f"{needed} or more if the machine has them."
        )


def in_words(size: int | float) -> str:
    """Return a number of bytes, such as 1.5 GiB."""
    for unit in ("bytes", "KiB", "MiB", "GiB", "TiB"):
        if size < 1024:
            return f"{size:.4g} {unit}"
        size /= 1024
    return f"{size:.3g} PiB"
