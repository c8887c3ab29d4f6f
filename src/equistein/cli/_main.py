"""The command line: subcommands, and errors without tracebacks."""

import dataclasses
import difflib
import os
import sys
from collections.abc import Collection, Sequence
from typing import Annotated, Any, Union

import tyro

from equistein.cli._attempt import INTERRUPTED
from equistein.cli._compiled import keep_compiled
from equistein.cli._fit import fit_arguments
from equistein.cli._given import given
from equistein.cli._hosts import join
from equistein.cli._list import List
from equistein.cli._report import Report
from equistein.cli._resume import Resume
from equistein.cli._run import run_arguments
from equistein.cli._sample import Sample
from equistein.cli._score import Score
from equistein.cli._sweep import own_arguments, Sweep
from equistein.experiments import EXPERIMENTS
from equistein.runs import UserError

_ABOUT = (
    "Sample and learn probability densities that have a symmetry. Completion for a "
    "shell: equistein --tyro-print-completion bash, or zsh."
)
_CLOSED_PIPE = 141  # as a shell reports a command whose reader went away


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status.

    Returns:
        0 when done, 2 for a mistake in the arguments or the input, 130 when stopped
        with Ctrl-C, 1 when the numbers broke down.
    """
    try:
        status = _status(list(sys.argv[1:] if arguments is None else arguments))
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        # What is left to print goes nowhere, at the interpreter's end too.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _CLOSED_PIPE


def _status(arguments: list[str]) -> int:
    try:
        join(arguments)
        command = parsed(arguments)
        keep_compiled()
        return command.execute()
    except SystemExit as stop:  # tyro has explained itself
        return int(stop.code or 0)
    except BrokenPipeError:
        raise
    except (UserError, OSError) as error:
        print(f"equistein: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\nequistein: stopped.", file=sys.stderr)
        return INTERRUPTED


def parsed(arguments: list[str]) -> Any:
    """Return the command that the arguments name, with its settings.

    Raises:
        UserError: If there is no such command, or a setting does not do.
    """
    commands = {
        "list": List,
        "run": run_arguments(given(arguments, "preset")),
        "fit": fit_arguments(arguments),
        "sample": Sample,
        "score": Score,
        "resume": Resume,
        "report": Report,
        "sweep": Sweep,
    }
    if not arguments or arguments == ["run"]:
        arguments = [*arguments, "--help"]
    _check_name("command", arguments[0], commands)
    if arguments[0] == "run":
        _check_name("experiment", arguments[1], EXPERIMENTS)
    swept: tuple[str, ...] = ()
    if arguments[0] == "sweep":
        own, swept = own_arguments(arguments[1:])
        arguments = ["sweep", *own]
    described = (
        Annotated[command, tyro.conf.subcommand(name)]
        for name, command in commands.items()
    )
    try:
        command = tyro.cli(
            Union[tuple(described)],  # type: ignore  # noqa: UP007
            args=arguments,
            prog="equistein",
            description=_ABOUT,
            config=(tyro.conf.OmitSubcommandPrefixes,),
        )
    except (ImportError, ValueError) as error:  # a completion may need a package
        raise UserError(str(error)) from None
    return dataclasses.replace(command, command=swept) if swept else command


def _check_name(kind: str, name: str, known: Collection[str]) -> None:
    if name in known or name.startswith("-"):
        return
    near = difflib.get_close_matches(name, known, n=1)
    hint = f" Did you mean {near[0]}?" if near else ""
    raise UserError(
        f"There is no {kind} {name!r}.{hint} The {kind}s are {', '.join(known)}."
    )
