"""The progress of long work: a bar on a terminal, lines elsewhere."""

import sys
from collections.abc import Iterable, Iterator
from typing import Any

from tqdm import tqdm

_LINE = (
    "{desc}{n_fmt} of {total_fmt} {unit}s, {elapsed} so far, {remaining} left{postfix}"
)
_SECONDS = 15.0  # between two lines


class _Shown:
    """Whether this process shows progress at all."""

    value: bool = True


def show_progress(shown: bool) -> None:
    """Choose whether this process shows progress bars."""
    _Shown.value = shown


class _Bar(tqdm):
    """A bar that says "compiling" until the first step is done."""

    def __iter__(self) -> Iterator:
        with self:
            for item in self.iterable or ():
                yield item
                self.update()

    def update(self, n: int | float | None = 1) -> bool | None:
        if n and not self.disable and self.desc:
            self.set_description_str("", refresh=False)
        return super().update(n)


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


def progress_bar(items: Iterable | None = None, **options: Any) -> _Bar:
    """Return a tqdm bar on the standard error; a line now and then off a terminal.

    Until the first step is done it says "compiling", or what `desc` says instead.
    """
    options = {"desc": "compiling", "unit": "step"} | options
    options["disable"] = options.get("disable", False) or not _Shown.value
    seconds = 0.1
    if not sys.stderr.isatty():
        options["desc"] = options["desc"] and f"{options['desc']}: "
        seconds = _SECONDS
        options |= {"bar_format": _LINE, "file": _PlainLines(sys.stderr)}
    return _Bar(items, mininterval=seconds, maxinterval=seconds, **options)
