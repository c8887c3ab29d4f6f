"""What several parts of a run need, computed by one of them."""

import functools
import threading
from collections.abc import Callable
from typing import Any, TypeVar

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


class OnceProperty(functools.cached_property):
    """A property that is computed once for each object.

    Beside `functools.cached_property` of Python 3.12 and later, a thread that asks
    while another computes waits for it.
    """

    def __init__(self, function: Callable):
        super().__init__(function)
        self._threads = threading.RLock()

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        with self._threads:
            return super().__get__(instance, owner)
