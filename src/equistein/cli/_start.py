"""Where the command line begins: little is imported before signals are heard."""

import os
import sys
from collections.abc import Sequence

from equistein.cli._signals import end_by_signals, INTERRUPTED, was_told


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status.

    Args:
        arguments: What follows `equistein`; None is what the process was given, and
            then signals end it in order.

    Returns:
        0 when done, 2 for a mistake in the arguments or the input, 130 when stopped
        with Ctrl-C or SIGTERM, 1 when the numbers broke down.
    """
    if arguments is not None:
        return _executed(arguments)
    end_by_signals()
    status = _executed(sys.argv[1:])
    if was_told():  # what JAX's threads still compute is not waited for
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    return status


def _executed(arguments: Sequence[str]) -> int:
    try:
        from equistein.cli._main import execute

        return execute(arguments)
    except KeyboardInterrupt:
        pass
    except Exception:
        if not was_told():
            raise
    print("\nequistein: stopped.", file=sys.stderr)
    return INTERRUPTED
