"""What several parts of a run need, computed by one of them."""

import functools
import threading
from collections.abc import Callable
from typing import TypeVar

Function = TypeVar("Function", bound=Callable)


def once(function: Function) -> Function:
    """Return a function that computes once for the same arguments.

    Beside `functools.cache`, a thread that asks while another computes waits for it.
    """
    known, lock = functools.cache(function), threading.RLock()

    @functools.wraps(function)
    def locked(*arguments):
        with lock:
            return known(*arguments)

    return locked  # type: ignore[return-value]
