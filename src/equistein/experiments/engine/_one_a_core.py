"""Parts of a run side by side, each on a core of a processor."""

import contextvars
import ctypes
import queue
import threading
import time
from collections.abc import Callable
from typing import Any

from equistein._progress import labeled
from equistein.experiments.engine._one_by_one import Begins, Ends, Stages
from equistein.runs import Outcome


def one_a_core(
    stages: Stages,
    num: int,
    begins: Begins,
    ends: Ends,
) -> None:
    """Make parts, some at a time, in threads of their own.

    An error in one of them, or Ctrl-C, ends all others where they are, as Ctrl-C would;
    what was finished meanwhile is kept.

    Args:
        stages: What makes each part, by name.
        num: The number of threads.
        begins: What is called as a part begins, in this thread.
        ends: What is called as a part ends, in this thread.
    """
    crew = _Crew(stages, num)
    left = len(stages)
    try:
        while left:
            name, found, seconds = crew.news.get()
            if found is None:
                begins(name)
                continue
            left -= 1
            if isinstance(found, BaseException):
                raise found
            ends(name, found, seconds)
    finally:
        crew.end()
        while not crew.news.empty():
            name, found, seconds = crew.news.get()
            if isinstance(found, Outcome):
                ends(name, found, seconds)


class _Crew:
    """Threads that make parts, and tell of each that it begins and how it ended.

    Args:
        stages: What makes each part, by name.
        num: The number of threads.
    """

    def __init__(self, stages: Stages, num: int):
        self.news: queue.SimpleQueue[tuple[str, Any, float]] = queue.SimpleQueue()
        self._todo = list(stages.items())
        self._threads = [
            threading.Thread(
                target=contextvars.copy_context().run, args=(self._work,), daemon=True
            )
            for _ in range(num)
        ]
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        """End all threads: each raises `KeyboardInterrupt` where it is, and is awaited.

        One that JAX computes in raises it once that has come back.
        """
        self._todo.clear()
        error = ctypes.py_object(KeyboardInterrupt)
        for thread in self._threads:
            if thread.is_alive():
                number = ctypes.c_ulong(thread.ident or 0)
                ctypes.pythonapi.PyThreadState_SetAsyncExc(number, error)
        for thread in self._threads:
            thread.join()

    def _work(self) -> None:
        try:
            while self._todo:
                self._make(*self._todo.pop(0))
        except (IndexError, KeyboardInterrupt):  # another took the last; or the end
            return

    def _make(self, name: str, stage: Callable[[], Outcome]) -> None:
        self.news.put((name, None, 0.0))
        began = time.perf_counter()
        try:
            with labeled(name):
                found: Outcome | BaseException = stage()
        except BaseException as error:
            found = error
        self.news.put((name, found, time.perf_counter() - began))
