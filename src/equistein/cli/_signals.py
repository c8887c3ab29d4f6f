"""How a command ends: on Ctrl-C, SIGTERM and SIGHUP, at once or with its work kept."""

import os
import signal
import sys
from collections.abc import Callable
from typing import Any

INTERRUPTED = 130  # as a shell reports a command stopped by Ctrl-C


class _Signal:
    """Which signal has arrived, if one has, and whether it may raise."""

    number: int | None = None
    raises: bool = False


def end_by_signals() -> None:
    """Let signals end the process.

    Inside `run_locked` a first one raises `KeyboardInterrupt`, so that work is kept; a
    second one, or any elsewhere, ends the process at once. What a process was started
    to ignore, as by nohup, it ignores.
    """
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)  # Windows has not all of them
        if number is not None and signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _end)
    sys.unraisablehook = _end_unraised


def was_signaled() -> bool:
    """Return whether a signal has arrived, of which any later error is a consequence.

    Libraries that are interrupted raise errors of their own.
    """
    return _Signal.number is not None


def run_locked(folder: Any, work: Callable[[], int]) -> int:
    """Do the work of a run folder, locked meanwhile, and return the exit status."""
    folder.hold()
    # Only here: an exception in an import could leave a library half loaded.
    _Signal.raises = True
    try:
        return work()
    except (KeyboardInterrupt, Exception) as error:
        if not isinstance(error, KeyboardInterrupt) and not was_signaled():
            raise
        print(
            f"\nStopped. Finished work is kept in {folder.path}; continue with\n"
            f"  equistein resume {folder.path}",
            file=sys.stderr,
        )
        return INTERRUPTED
    finally:
        _Signal.raises = False
        folder.release()


def _end(number: int, frame: Any) -> None:
    if _Signal.raises and _Signal.number is None:
        _Signal.number = number
        raise KeyboardInterrupt
    if _Signal.number is None:
        os.write(2, b"\nequistein: stopped.\n")
    if "equistein._files" in sys.modules:
        sys.modules["equistein._files"].remove_unfinished()
    os._exit(INTERRUPTED)


def _end_unraised(caught: Any) -> None:
    """End at once where Python could not raise, as while it freed something."""
    if caught.exc_type is KeyboardInterrupt and was_signaled():
        _end(0, None)
    sys.__unraisablehook__(caught)
