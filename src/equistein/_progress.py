"""The progress bar of long work."""

import sys
from collections.abc import Iterable, Iterator
from typing import Any

from tqdm import tqdm


class _Bar(tqdm):
    """A bar that says what a step waits for until the first is done."""

    def __iter__(self) -> Iterator:
        with self:
            for item in self.iterable or ():
                yield item
                self.update()

    def update(self, n: int | float | None = 1) -> bool | None:
        if n and not self.disable and self.desc:
            self.set_description_str("", refresh=False)
        return super().update(n)


def progress_bar(items: Iterable | None = None, **options: Any) -> tqdm:
    """Return a tqdm bar that redraws often on a terminal and seldom in a log.

    It says "compiling" until the first step is done, or what `desc` has in its place.
    """
    options = {"desc": "compiling"} | options
    interval = 0.1 if sys.stderr.isatty() else 15.0
    return _Bar(items, mininterval=interval, maxinterval=interval, **options)
