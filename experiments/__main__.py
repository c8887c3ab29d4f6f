"""`python -m experiments NAME`: run an experiment, or list all of them."""

import argparse
import dataclasses
import datetime
import os
import pathlib
import shlex
import signal
import sys
from collections.abc import Sequence
from typing import Annotated, Any, Literal

import tyro

from equistein.data import enable_compilation_cache
from equistein.runs import UserError
from equistein.samplers import NonFiniteError
from equistein.training import CheckpointError, DivergenceError
from experiments import experiment, MODULES
from experiments._engine import Experiment
from experiments._perform import open_folder, perform

_PRESETS = ("smoke", "quick", "paper")
_INTERRUPTED = 130  # as a shell reports a command stopped by Ctrl-C


def main(arguments: Sequence[str]) -> int:
    """Run the experiment that the arguments name, and return the exit status.

    Returns:
        0 when done, 2 for invalid arguments, 130 when stopped with Ctrl-C or SIGTERM, 1
        when the numbers broke down.
    """
    if not arguments or arguments[0] in ("-h", "--help", "list"):
        print(_overview())
        return 0
    name, *rest = arguments
    try:
        if name not in MODULES:
            raise UserError(
                f"There is no experiment {name!r}. The experiments are "
                f"{', '.join(MODULES)}."
            )
        return _run(experiment(name), rest)
    except (UserError, ValueError, CheckpointError, OSError) as error:
        print(f"experiments: {error}", file=sys.stderr)
        return 2


def parse(chosen: Experiment, words: Sequence[str]) -> Any:
    """Return the arguments of an experiment; `--preset` sets the defaults of others."""
    early = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    early.add_argument("--preset", choices=_PRESETS, default="quick")
    size = early.parse_known_args(words)[0].preset
    settings = chosen.presets[size]
    if chosen.choice:
        choice = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
        first = next(iter(settings))
        choice.add_argument(f"--{chosen.choice}", choices=settings, default=first)
        value = getattr(choice.parse_known_args(words)[0], chosen.choice)
        settings = settings[value]

    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Arguments:
        """An experiment with its settings.

        Attributes:
            config: The settings.
            preset: The size of the run, which sets the defaults of all settings.
            seed: The first seed.
            out: The run folder; by default a new one under runs. That of a run with the
                same settings continues it.
            dry_run: Check everything and print the parts, but run and write nothing.
        """

        config: Annotated[type(settings), tyro.conf.arg(name="")] = settings  # type: ignore
        preset: Literal["smoke", "quick", "paper"] = size
        seed: int = 0
        out: pathlib.Path | None = None
        dry_run: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False

    return tyro.cli(
        Arguments, args=list(words), prog=f"python -m experiments {chosen.name}",
        description=f"{chosen.summary} ({chosen.figure})",
    )  # fmt: skip


def _run(chosen: Experiment, words: Sequence[str]) -> int:
    given = parse(chosen, words)
    if not 0 <= given.seed < 2**63:
        raise UserError(f"--seed must be from 0 to 2^63 - 1, but got {given.seed}.")
    parts = list(chosen.stages(given.config, given.seed))
    if given.dry_run:
        print(f"{len(parts)} parts: {', '.join(parts)}. Nothing is written.")
        return 0
    now = datetime.datetime.now().strftime("%Y%m%d-%H%M%S-%f")[:-3]
    path = given.out or pathlib.Path("runs") / f"{chosen.name}-{now}"
    enable_compilation_cache()
    folder = open_folder(chosen, given.config, given.preset, given.seed, path)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        perform(
            chosen, given.config, given.preset, given.seed, folder,
            say=lambda line: print(line, flush=True),
        )  # fmt: skip
        print(f"Report: {folder.path / 'report.html'}")
        return 0
    except KeyboardInterrupt:
        options = shlex.join(words if given.out else [*words, "--out", str(path)])
        command = f"python -m experiments {chosen.name} {options}"
        print(f"\nStopped. Continue with\n  {command}", file=sys.stderr)
        return _INTERRUPTED
    except (NonFiniteError, DivergenceError) as error:
        print(f"experiments: {error}", file=sys.stderr)
        return 1
    finally:
        folder.release()


def _overview() -> str:
    width = max(map(len, MODULES))
    lines = [f"  {name:<{width}}  {experiment(name).summary}" for name in MODULES]
    usage = "usage: python -m experiments NAME [--preset smoke|quick|paper] [settings]"
    more = "python -m experiments NAME --help lists the settings of an experiment."
    return "\n".join([usage, "", *lines, "", more])


if __name__ == "__main__":
    status = main(sys.argv[1:])
    if status == _INTERRUPTED:  # JAX's threads still compute, and can crash at an exit
        sys.stdout.flush()
        os._exit(status)
    sys.exit(status)
