"""From words to a command: only the one they name is imported."""

import dataclasses
import difflib
import importlib
from collections.abc import Callable, Collection, Sequence
from typing import Annotated, Any, Literal, NamedTuple, Union

import tyro

from equistein._errors import UserError

_ABOUT = "Sample and learn probability densities that have a symmetry."


class _Command(NamedTuple):
    """Where a command is, and what it is for: the first sentence of its own help."""

    module: str
    name: str
    about: str


COMMANDS = {
    "list": _Command(
        "_list", "List", "List the experiments, with the paper's figures."
    ),
    "run": _Command(
        "_run",
        "run_arguments",
        "Run an experiment; `equistein run NAME --help` lists its settings.",
    ),
    "fit": _Command(
        "_fit",
        "fit_arguments",
        "Learn an invariant energy from data, and draw new points.",
    ),
    "sample": _Command("_sample", "Sample", "Draw new samples from a learned energy."),
    "score": _Command(
        "_score", "Score", "Compare samples of a particle system with exact ones."
    ),
    "resume": _Command(
        "_resume",
        "Resume",
        "Go on with an interrupted run, fit or sweep, to the same numbers.",
    ),
    "report": _Command(
        "_report",
        "Report",
        "Write the reports of runs anew, and a page that compares several.",
    ),
    "sweep": _Command(
        "_sweep",
        "Sweep",
        "Run an experiment, or a fit, for each combination of some settings.",
    ),
    "doctor": _Command(
        "_doctor", "Doctor", "Tell versions, devices, extras, data and folders."
    ),
}


def parsed(arguments: Sequence[str]) -> Any:
    """Return the command that the arguments name, with its settings.

    Raises:
        UserError: If there is no such command, or a setting does not do.
        SystemExit: Once a help is printed, or what is wrong with a setting.
    """
    words = list(arguments)
    if not words or words[0].startswith("-"):
        return _cli(_overview(), words or ["--help"], "equistein", _ABOUT)
    name, rest = words[0], words[1:]
    check_name("command", name, COMMANDS)
    swept: tuple[str, ...] = ()
    if name == "run":
        rest = rest or ["--help"]
        _check_experiment(rest[0])
    if name == "sweep":
        own_arguments = _imported("_sweep", "own_arguments")
        rest, swept = own_arguments(rest)
    command = _cli(_arguments(name, words), rest, f"equistein {name}")
    return dataclasses.replace(command, command=swept) if swept else command


def print_completion(shell: str) -> None:
    """Print the script that completes all commands and their settings in a shell."""
    commands = (
        Annotated[_arguments(name, []), tyro.conf.subcommand(name)] for name in COMMANDS
    )
    everything = Union[tuple(commands)]  # type: ignore  # noqa: UP007
    _cli(everything, ["--tyro-print-completion", shell], "equistein")


def check_name(kind: str, name: str, known: Collection[str]) -> None:
    """Raise `UserError` for a name that is not known, with the nearest one that is."""
    if name in known or name.startswith("-"):
        return
    near = difflib.get_close_matches(name, known, n=1)
    hint = f" Did you mean {near[0]}?" if near else ""
    raise UserError(
        f"There is no {kind} {name!r}.{hint} The {kind}s are {', '.join(known)}."
    )


def _check_experiment(name: str) -> None:
    check_name("experiment", name, _imported("_run", "EXPERIMENTS"))


def _imported(module: str, name: str) -> Any:
    return getattr(importlib.import_module(f"equistein.cli.{module}"), name)


def _arguments(name: str, words: Sequence[str]) -> Any:
    """Return the class of a command's arguments, which may depend on the words."""
    found = _imported(COMMANDS[name].module, COMMANDS[name].name)
    return found if isinstance(found, type) else found(words)


def _overview() -> Any:
    """Return the class of what can be said without a command, and all commands."""
    later = dataclasses.make_dataclass("Later", [])
    commands = (
        Annotated[later, tyro.conf.subcommand(name, description=command.about)]
        for name, command in COMMANDS.items()
    )

    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Overview:
        """Sample and learn probability densities that have a symmetry.

        Attributes:
            version: Print the version.
            completion: Print the script that completes commands and settings in this
                shell: equistein --completion bash > the file that it reads.
            quiet: Of every command: print the answer alone, no lines and no progress.
            json: Of every command: print the answer as one JSON object; other lines go
                to the standard error.
            command: What to do; equistein COMMAND --help explains it.
        """

        command: Annotated[Union[tuple(commands)], tyro.conf.arg(name="")]  # type: ignore  # noqa: UP007
        version: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
        completion: Literal["bash", "zsh", "tcsh"] | None = None
        quiet: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
        json: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False

    return Overview


def _cli(
    kind: Any, words: Sequence[str], program: str, about: str | None = None
) -> Any:
    configured: Callable[..., Any] = tyro.cli
    try:
        return configured(
            kind, args=words, prog=program, description=about,
            config=(tyro.conf.OmitSubcommandPrefixes,),
        )  # fmt: skip
    except (ImportError, ValueError) as error:  # a completion may need a package
        raise UserError(str(error)) from None
