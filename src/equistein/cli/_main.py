"""`equistein`: which command the words name, and errors without tracebacks."""

import difflib
import importlib
import importlib.metadata
import os
import sys
from collections.abc import Sequence
from typing import Any

from equistein.cli._signals import end_by_signals, INTERRUPTED, was_signaled

ABOUT = "Sample and learn probability densities that have a symmetry."
COMMANDS = {  # the module and class of each, imported only for it, and its help
    "fit": ("_fit", "Fit", "Learn an invariant energy from data, and draw new points."),
    "sample": ("_sample", "Sample", "Draw new samples from a learned energy."),
    "score": (
        "_score", "Score", "Compare samples of a particle system with exact ones."
    ),
    "resume": (
        "_resume", "Resume",
        "Continue an interrupted fit or sweep, to the same numbers.",
    ),
    "report": (
        "_report", "Report",
        "Write reports again, and a page that compares several runs.",
    ),
    "sweep": (
        "_sweep", "Sweep", "Run a command for each combination of some settings."
    ),
    "doctor": (
        "_doctor", "Doctor", "Show versions, devices, extras, data and folders."
    ),
}  # fmt: skip
_CLOSED_PIPE = 141  # as a shell reports a command whose reader went away


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status.

    Args:
        arguments: The words after `equistein`; None is those of the process, which
            signals then end in order.

    Returns:
        0 when done, 2 for a mistake in the arguments or the input, 130 when stopped
        with Ctrl-C or SIGTERM, 1 when the numbers broke down.
    """
    if arguments is not None:
        return _execute(list(arguments))
    end_by_signals()
    try:
        status = _execute(sys.argv[1:])
    except KeyboardInterrupt:
        status = _stopped()
    if was_signaled():  # do not wait for what JAX's threads still compute
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    return status


def _execute(words: list[str]) -> int:
    from equistein.cli._output import close, set_output

    quiet, json = "--quiet" in words, "--json" in words
    words = [word for word in words if word not in ("--quiet", "--json")]
    set_output(quiet=quiet, json=json)
    try:
        status = _status(words)
        close(status)
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        # The rest of the output goes nowhere, also when the interpreter ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _CLOSED_PIPE


def _status(words: list[str]) -> int:
    from equistein.cli._output import answer, fail, print_sampling_warnings

    if words == ["--version"]:
        version = importlib.metadata.version("equistein")
        answer(f"equistein {version}", version=version)
        return 0
    if words in ([], ["-h"], ["--help"]):
        answer(_overview())
        return 0
    if words[0] not in COMMANDS:
        near = difflib.get_close_matches(words[0], COMMANDS, n=1)
        hint = f" Did you mean {near[0]}?" if near else ""
        fail(
            f"There is no command {words[0]!r}.{hint} The commands are "
            f"{', '.join(COMMANDS)}."
        )
        return 2
    from equistein._limits import is_out_of_memory
    from equistein.runs import UserError

    try:
        command = parse(words)
        from equistein.cli._compilation_cache import use_compilation_cache

        use_compilation_cache()
        with print_sampling_warnings():
            return command.execute()
    except SystemExit as stop:  # tyro has printed a help or an error
        return int(stop.code or 0)
    except BrokenPipeError:
        raise
    except KeyboardInterrupt:
        return _stopped()
    except Exception as error:
        if was_signaled():
            return _stopped()
        if isinstance(error, UserError | OSError):
            fail(str(error))
            return 2
        if not is_out_of_memory(error):
            raise
        fail(
            f"Memory ran out: {error}. Finished work is kept. Take fewer particles, "
            "samples or chains, or smaller networks and batches."
        )
        return 1


def parse(words: Sequence[str]) -> Any:
    """Return the command that the words name, with its settings.

    Raises:
        UserError: If a setting is invalid.
        SystemExit: After a help is printed, or what is wrong with a setting.
    """
    import tyro

    from equistein.runs import UserError

    name, *rest = words
    module, kind, _ = COMMANDS[name]
    command = getattr(importlib.import_module(f"equistein.cli.{module}"), kind)
    try:
        if name == "sweep":
            return command.parse(rest)
        return tyro.cli(command, args=rest, prog=f"equistein {name}")
    except ValueError as error:
        raise UserError(str(error)) from None


def _overview() -> str:
    width = max(map(len, COMMANDS))
    lines = [f"  {name:<{width}}  {about}" for name, (_, _, about) in COMMANDS.items()]
    return "\n".join(
        [
            "usage: equistein COMMAND [options]", "", ABOUT, "", *lines, "",
            "  --version  print the version",
            "  --quiet    of every command: print the answer only, no progress",
            "  --json     of every command: print the answer as one JSON object", "",
            "equistein COMMAND --help explains a command.",
        ]
    )  # fmt: skip


def _stopped() -> int:
    print("\nequistein: stopped.", file=sys.stderr)
    return INTERRUPTED
