"""The progress bar of long work."""

import sys
from collections.abc import Iterable
from typing import Any

from tqdm import tqdm


def progress_bar(items: Iterable | None = None, **options: Any) -> tqdm:
    """Return a tqdm bar that redraws often on a terminal and seldom in a log."""
    interval = 0.1 if sys.stderr.isatty() else 15.0
    return tqdm(items, mininterval=interval, maxinterval=interval, **options)
