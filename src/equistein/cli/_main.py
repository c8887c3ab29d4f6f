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
COMMANDS = {  # name: its module, which is imported when it is called, and its help
    "fit": ("_fit", "Learn an invariant energy from data, and draw new points."),
    "sample": ("_sample", "Draw new samples from a learned energy."),
    "score": ("_score", "Compare samples of a particle system with exact ones."),
    "evaluate": ("_evaluate", "Evaluate a learned energy at the points of a file."),
    "resume": ("_runs", "Continue an interrupted fit or sweep, to the same numbers."),
    "report": ("_runs", "Write the reports of runs again."),
    "sweep": ("_sweep", "Run a command for each combination of some settings."),
    "doctor": ("_doctor", "Show versions, devices, extras, data and folders."),
}
_CLOSED_PIPE = 141  # as a shell reports a command whose reader went away


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status.

    Args:
        arguments: The words after `equistein`; None is `sys.argv`, and then signals
            stop the process with its work kept.

    Returns:
        0 when done, 2 for a mistake in the arguments or the input, 130 when stopped
        with Ctrl-C or SIGTERM, 141 when the reader of a pipe went away, 1 when
        training or sampling diverged or memory ran out.
    """
    if arguments is not None:
        return _run_and_print(list(arguments))
    end_by_signals()
    try:
        status = _run_and_print(sys.argv[1:])
    except KeyboardInterrupt:
        status = _report_stop()
    if was_signaled():  # do not wait for what JAX's threads still compute
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    return status


def _run_and_print(words: list[str]) -> int:
    from equistein.cli._output import print_json, set_output

    quiet, json = "--quiet" in words, "--json" in words
    words = [word for word in words if word not in ("--quiet", "--json")]
    set_output(quiet=quiet, json=json)
    try:
        status = _run_command(words)
        print_json(status)
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        # The rest of the output goes nowhere, also when the interpreter ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _CLOSED_PIPE


def _run_command(words: list[str]) -> int:
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
        hint = f"Did you mean {near[0]}? " if near else ""
        commands = f"The commands are {', '.join(COMMANDS)}."
        return fail(f"There is no command {words[0]!r}. {hint}{commands}", 2)
    from equistein.data import enable_compilation_cache
    from equistein.runs import UserError

    try:
        command = parse(words)
        enable_compilation_cache()
        with print_sampling_warnings():
            return command.execute()
    except SystemExit as stop:  # tyro has printed a help or an error
        return int(stop.code or 0)
    except BrokenPipeError:
        raise
    except KeyboardInterrupt:
        return _report_stop()
    except Exception as error:
        if was_signaled():
            return _report_stop()
        if isinstance(error, FloatingPointError):  # of samplers and of training
            return fail("\n".join([str(error), *getattr(error, "__notes__", [])]), 1)
        if isinstance(error, MemoryError) or "RESOURCE_EXHAUSTED" in str(error):  # XLA
            reason = f"Memory ran out: {error}. Finished work is kept."
            remedy = "Take fewer particles, samples or chains, or smaller networks."
            return fail(f"{reason} {remedy}", 1)
        # The library explains invalid arguments and files by `ValueError`, and what is
        # not installed by `ImportError`.
        if isinstance(error, UserError | ValueError | ImportError | OSError):
            return fail(str(error), 2)
        raise


def parse(words: Sequence[str]) -> Any:
    """Return the command that the words name, with its settings."""
    import tyro

    from equistein.runs import UserError

    name, *rest = words
    module = importlib.import_module(f"equistein.cli.{COMMANDS[name][0]}")
    command = getattr(module, name.capitalize())
    try:
        if name == "sweep":
            return command.parse(rest)
        return tyro.cli(command, args=rest, prog=f"equistein {name}")
    except ValueError as error:
        raise UserError(str(error)) from None


def _overview() -> str:
    lines = ["usage: equistein COMMAND [options]", "", ABOUT, ""]
    lines += [f"  {name:<9}  {about}" for name, (_, about) in COMMANDS.items()]
    lines += [
        "",
        "  --version  print the version",
        "  --quiet    of every command: print the answer only, no progress",
        "  --json     of every command: print the answer as one JSON object",
        "",
        "equistein COMMAND --help explains a command.",
    ]
    return "\n".join(lines)


def _report_stop() -> int:
    print("\nequistein: stopped.", file=sys.stderr)
    return INTERRUPTED
