"""`equistein run`, `resume` and `list`."""

import dataclasses
import datetime
import difflib
import functools
import pathlib
import sys
import time
from collections.abc import Sequence
from typing import Annotated, Any

import tyro

from equistein.data import DataError
from equistein.experiments import EXPERIMENTS, perform
from equistein.molecules import MissingRDKit
from equistein.runs import (
    config_from_json,
    config_to_json,
    RunFolder,
    UserError,
)
from equistein.samplers import NonFiniteError
from equistein.training import CheckpointError, DivergenceError

INTERRUPTED = 130  # as a shell reports a command stopped by Ctrl-C


def list_experiments() -> int:
    """Print the experiments with the paper's figure."""
    width = max(map(len, EXPERIMENTS))
    for name, experiment in EXPERIMENTS.items():
        print(f"{name:<{width}}  {experiment.summary}  [{experiment.figure}]")
    print("\nRun one:  equistein run NAME --preset smoke|quick|paper")
    print("Its settings:  equistein run NAME --help")
    return 0


def run_experiment(arguments: Sequence[str]) -> int:
    """Parse, check, make the run folder, and run."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print("usage: equistein run NAME [--preset smoke|quick|paper] [--seed N]")
        print("                          [--out DIR] [--any.config.field V]\n")
        return list_experiments()
    experiment = find_experiment(arguments[0])
    preset, rest = take_preset(experiment, arguments[1:])
    defaults = experiment.presets[preset]

    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Arguments:
        config: Annotated[type(defaults), tyro.conf.arg(name="")]  # type: ignore
        seed: Annotated[int, tyro.conf.arg(help="the first seed")] = 0
        out: Annotated[
            pathlib.Path | None, tyro.conf.arg(help="the run folder, new or empty")
        ] = None

    try:
        parsed = tyro.cli(
            Arguments,
            default=Arguments(config=defaults),
            args=list(rest),
            prog=f"equistein run {experiment.name} [--preset P]",
            description=f"{experiment.summary} ({experiment.figure}); preset {preset}",
        )
    except ValueError as error:  # of a setting
        raise UserError(str(error)) from None
    if not 0 <= parsed.seed < 2**63:
        raise UserError(
            f"--seed must be an integer from 0 to 2^63 - 1, but got {parsed.seed}."
        )
    try:
        experiment.check(parsed.config)
        experiment.stages(parsed.config, parsed.seed)
        config = config_to_json(parsed.config)
    except ValueError as error:
        raise UserError(str(error)) from None
    folder = RunFolder.create(parsed.out or default_folder(experiment.name))
    folder.write_config(
        {
            "command": "run",
            "experiment": experiment.name,
            "preset": preset,
            "seed": parsed.seed,
            "config": config,
        },
    )
    return execute(experiment, parsed.config, parsed.seed, folder)


def resume_experiment(folder: RunFolder) -> int:
    """Run the stages that an interrupted run did not finish."""
    described = folder.read_config()
    experiment = find_experiment(str(described.get("experiment")))
    seed, like = described.get("seed"), next(iter(experiment.presets.values()))
    try:
        config = config_from_json(like, described.get("config", {}))
        experiment.check(config)
        if not isinstance(seed, int) or seed < 0:
            raise ValueError(f"`seed` must be an integer >= 0, but got {seed!r}.")
        experiment.stages(config, seed)
    except DataError as error:
        raise UserError(str(error)) from None
    except (TypeError, ValueError) as error:
        message = f"{folder.path / 'config.json'} cannot be resumed: {error}."
        raise UserError(message) from None
    return execute(experiment, config, seed, folder)


def execute(experiment: Any, config: Any, seed: int, folder: RunFolder) -> int:
    """Run every part that is not yet done, then write results and report."""
    began = time.perf_counter()
    preset = str(folder.read_config().get("preset"))
    tell = functools.partial(print, flush=True)
    try:
        perform(experiment, config, seed, folder, preset=preset, tell=tell)
    except KeyboardInterrupt:
        print(
            f"\nStopped. What is finished is kept in {folder.path}; go on with\n"
            f"  equistein resume {folder.path}",
            file=sys.stderr,
        )
        return INTERRUPTED
    except NonFiniteError as error:
        print(
            f"equistein: {error}\nThe last finite particles are in "
            f"{folder.path / 'failed.npz'}.",
            file=sys.stderr,
        )
        return 1
    except (CheckpointError, DataError, MissingRDKit) as error:
        raise UserError(str(error)) from None
    except DivergenceError as error:
        print(f"equistein: {error}", file=sys.stderr)
        return 1
    report = folder.path / "report.html"
    print(f"Finished in {time.perf_counter() - began:.0f} s. Report: {report}")
    return 0


def find_experiment(name: str) -> Any:
    """Return the experiment of this name.

    Raises:
        UserError: If there is none, with the nearest names.
    """
    if name in EXPERIMENTS:
        return EXPERIMENTS[name]
    near = difflib.get_close_matches(name, EXPERIMENTS, n=1)
    hint = f" Did you mean {near[0]}?" if near else ""
    raise UserError(
        f"There is no experiment {name!r}.{hint} The experiments are "
        f"{', '.join(EXPERIMENTS)}."
    )


def take_preset(experiment: Any, arguments: Sequence[str]) -> tuple[str, list[str]]:
    """Split `--preset P` off the arguments, since the defaults depend on it.

    Raises:
        UserError: If there is no such preset.
    """
    rest, preset = list(arguments), "quick"
    for index, argument in enumerate(rest):
        if argument == "--preset" and index + 1 == len(rest):
            raise UserError(f"--preset needs one of {', '.join(experiment.presets)}.")
        if argument == "--preset":
            preset = rest[index + 1]
            del rest[index : index + 2]
            break
        if argument.startswith("--preset="):
            preset = argument.partition("=")[2]
            del rest[index]
            break
    if preset not in experiment.presets:
        raise UserError(
            f"{experiment.name} has no preset {preset!r}; it has "
            f"{', '.join(experiment.presets)}."
        )
    return preset, rest


def default_folder(name: str) -> pathlib.Path:
    """Return a folder under runs/ that no other run has."""
    now = datetime.datetime.now().strftime("%Y%m%d-%H%M%S")
    return pathlib.Path("runs") / f"{name}-{now}"
