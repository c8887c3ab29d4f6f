"""How a command ends on Ctrl-C, SIGTERM and SIGHUP."""

import _thread
import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator
from typing import Any

INTERRUPTED = 130  # as a shell reports a command stopped by Ctrl-C


class _Signal:
    """Which signal has arrived, if one has, and whether it may raise."""

    number: int | None = None
    raises: bool = False


def end_by_signals() -> None:
    """Let a signal end the process: at once, or in order where there is work to keep.

    In order means that it raises `KeyboardInterrupt`, whichever it is, in what
    `in_order` holds; a second one ends it at once. What a process was started to
    ignore, as by nohup, it ignores. On Windows Ctrl-C alone does so.
    """
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _end)
    sys.unraisablehook = _end_after_all


@contextlib.contextmanager
def in_order() -> Iterator[None]:
    """Let a signal raise `KeyboardInterrupt` meanwhile.

    Elsewhere it does not, for libraries that are just imported do not stand it.
    """
    _Signal.raises = True
    try:
        yield
    finally:
        _Signal.raises = False


def was_signaled() -> bool:
    """Return whether a signal has arrived.

    Then whatever error comes up is its consequence: libraries that are interrupted
    raise errors of their own.
    """
    return _Signal.number is not None


def _end(number: int, frame: Any) -> None:
    if _Signal.raises and _Signal.number is None:
        _Signal.number = number
        raise KeyboardInterrupt
    if _Signal.number is None:
        os.write(2, b"\nequistein: stopped.\n")
    if "equistein._files" in sys.modules:
        sys.modules["equistein._files"].remove_unfinished()
    os._exit(INTERRUPTED)


def _end_after_all(caught: Any) -> None:
    """Raise again, a little later, what Python could not: while it freed something."""
    if caught.exc_type is not KeyboardInterrupt or _Signal.number is None:
        sys.__unraisablehook__(caught)
        return
    number, _Signal.number = signal.Signals(_Signal.number), None
    later = threading.Timer(0.05, _thread.interrupt_main, [number])
    later.daemon = True
    later.start()
