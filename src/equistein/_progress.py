"""The progress of long work: a bar on a terminal, lines elsewhere."""

import io
import sys
from collections.abc import Iterable
from typing import Any

from tqdm import tqdm

_LINE = "{n_fmt} of {total_fmt} {unit}s, {elapsed} so far, {remaining} left{postfix}"
_SECONDS = 15.0  # between two lines


_common = {"disable": False}  # of all bars of this process


def show_progress(shown: bool) -> None:
    """Choose whether this process shows progress bars."""
    _common["disable"] = not shown


class _PlainLines(io.TextIOBase):
    """The standard error where it cannot be redrawn: each refresh becomes a line."""

    def write(self, text: str) -> int:
        if line := text.strip():
            sys.stderr.write(f"{line}\n")
        return len(text)


def progress_bar(
    items: Iterable | None = None, disable: bool = False, **options: Any
) -> tqdm:
    """Return a tqdm bar on the standard error; a line now and then off a terminal."""
    options = {"unit": "step", "disable": disable or _common["disable"]} | options
    seconds = 0.1
    if not sys.stderr.isatty():
        seconds = _SECONDS
        options |= {"bar_format": _LINE, "file": _PlainLines()}
    return tqdm(items, mininterval=seconds, maxinterval=seconds, **options)
