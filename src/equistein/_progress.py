"""The progress of long work: a bar on a terminal, lines elsewhere."""

import sys
from collections.abc import Iterable
from typing import Any

from tqdm import tqdm

_LINE = "{n_fmt} of {total_fmt} {unit}s, {elapsed} so far, {remaining} left{postfix}"
_SECONDS = 15.0  # between two lines


class _Shown:
    """Whether this process shows progress at all."""

    value: bool = True


def show_progress(shown: bool) -> None:
    """Choose whether this process shows progress bars."""
    _Shown.value = shown


class _PlainLines:
    """A stream that cannot be redrawn, on which each refresh becomes a line."""

    encoding: str = "utf-8"

    def __init__(self, file: Any):
        self.file = file

    def write(self, text: str) -> None:
        line = text.strip()
        if line:
            self.file.write(f"{line}\n")

    def flush(self) -> None:
        self.file.flush()


def progress_bar(items: Iterable | None = None, **options: Any) -> tqdm:
    """Return a tqdm bar on the standard error; a line now and then off a terminal."""
    options = {"unit": "step"} | options
    options["disable"] = options.get("disable", False) or not _Shown.value
    seconds = 0.1
    if not sys.stderr.isatty():
        seconds = _SECONDS
        options |= {"bar_format": _LINE, "file": _PlainLines(sys.stderr)}
    return tqdm(items, mininterval=seconds, maxinterval=seconds, **options)
