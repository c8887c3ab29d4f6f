"""The command line: what to print, and errors without tracebacks."""

import importlib.metadata
import os
import sys
from collections.abc import Sequence
from typing import Any

from equistein._errors import UserError
from equistein._limits import is_out_of_memory
from equistein.cli._output import answer, close, fail, set_output
from equistein.cli._parse import parsed, print_completion
from equistein.cli._signals import INTERRUPTED, was_told

_CLOSED_PIPE = 141  # as a shell reports a command whose reader went away


def execute(arguments: Sequence[str]) -> int:
    """Run the command that the arguments name, and return its exit status."""
    words = list(arguments)
    quiet, json = "--quiet" in words, "--json" in words
    words = [word for word in words if word not in ("--quiet", "--json")]
    set_output(quiet=quiet, json=json)
    try:
        status = _status(words)
        close(status)
        if "--distributed" in words:
            from equistein.cli._hosts import leave

            leave(status)
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        # What is left to print goes nowhere, at the interpreter's end too.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _CLOSED_PIPE


def _status(words: list[str]) -> int:
    try:
        if words[:1] == ["--version"]:
            version = importlib.metadata.version("equistein")
            answer(f"equistein {version}", version=version)
            return 0
        if words[:1] == ["--completion"] and len(words) > 1:
            print_completion(words[1])
            return 0
        command = _prepared(words)
        from equistein.cli._doubts import doubts_printed  # imports JAX

        with doubts_printed():
            return command.execute()
    except SystemExit as stop:  # tyro has explained itself
        return int(stop.code or 0)
    except BrokenPipeError:
        raise
    except (UserError, OSError) as error:
        if was_told():
            return _stopped()
        fail(str(error))
        return 2
    except KeyboardInterrupt:
        return _stopped()
    except Exception as error:
        if was_told():
            return _stopped()
        if not is_out_of_memory(error):
            raise
        fail(
            f"Memory ran out: {error}. What is finished is kept. Take fewer "
            "particles, samples or chains, or smaller networks and batches."
        )
        return 1


def _stopped() -> int:
    print("\nequistein: stopped.", file=sys.stderr)
    return INTERRUPTED


def _prepared(words: list[str]) -> Any:
    """Return the command; processes that work together meet before JAX begins."""
    if "--distributed" in words:
        from equistein.cli._hosts import join

        join(words)
    command = parsed(words)
    from equistein.cli._compiled import keep_compiled  # imports JAX

    keep_compiled()
    return command
