"""The progress of long work: a bar on a terminal, lines elsewhere."""

import contextlib
import contextvars
import shutil
import sys
import time
from collections.abc import Iterable, Iterator
from typing import Any

from tqdm import tqdm

_LINE = (
    "{desc}{n_fmt} of {total_fmt} {unit}s, {elapsed} so far, {remaining} left{postfix}"
)
_SHORT_LINE = "{desc}{n_fmt} of {total_fmt}, {remaining} left"
_NARROW = 60  # columns, where the line is the short one
_SECONDS = 15.0  # between two lines
_UP = "\x1b[A"  # by which tqdm goes back from a bar that is not the first


_label: contextvars.ContextVar[str] = contextvars.ContextVar("label", default="")


@contextlib.contextmanager
def labeled(name: str) -> Iterator[None]:
    """Let the bars of this thread begin with a name, beside those of others."""
    token = _label.set(f"{name}: ")
    try:
        yield
    finally:
        _label.reset(token)


class _Shown:
    """Whether this process shows progress at all."""

    value: bool = True


def show_progress(shown: bool) -> None:
    """Choose whether this process shows progress, where work is told to."""
    _Shown.value = shown


def print_line(text: str, file: Any) -> None:
    """Print a line above the bars that are there."""
    tqdm.write(text, file=file)
    file.flush()


class _Bar(tqdm):
    """A bar that says what a step waits for until the first is done."""

    label: str = ""

    def __iter__(self) -> Iterator:
        with self:
            for item in self.iterable or ():
                yield item
                self.update()

    def update(self, n: int | float | None = 1) -> bool | None:
        if n and not self.disable and self.desc != self.label:
            self.set_description_str(self.label, refresh=False)
        return super().update(n)

    def tell(self, text: str) -> None:
        """Show a text behind the numbers, no more often than a bar or a line is."""
        if self.disable:
            return
        self.set_postfix_str(text, refresh=False)
        if time.time() - self.last_print_t >= self.mininterval:
            self.refresh()
            self.last_print_t = time.time()


class _PlainLines:
    """What a bar is written to where it cannot be redrawn: each time a line."""

    encoding: str = "utf-8"

    def __init__(self, file: Any):
        self.file = file

    def write(self, text: str) -> None:
        line = text.replace(_UP, "").strip()
        if line:
            self.file.write(f"{line}\n")

    def flush(self) -> None:
        self.file.flush()


def progress_bar(items: Iterable | None = None, **options: Any) -> _Bar:
    """Return a tqdm bar, which says "compiling" until the first step is done.

    It has what `desc` says in that word's place. Where the standard error is no
    terminal it is a line now and then.
    """
    options = {"desc": "compiling", "unit": "step"} | options
    options["disable"] = options.get("disable", False) or not _Shown.value
    label, waits = _label.get(), options["desc"]
    seconds = 0.1
    if sys.stderr.isatty():
        options["leave"] = not label  # else it would stay amid the others
    else:
        waits = waits and f"{waits}: "
        seconds = _SECONDS
        narrow = shutil.get_terminal_size().columns < _NARROW
        line = _SHORT_LINE if narrow else _LINE
        options |= {"bar_format": line, "file": _PlainLines(sys.stderr)}
    options["desc"] = label + waits
    bar = _Bar(items, mininterval=seconds, maxinterval=seconds, **options)
    bar.label = label
    return bar
