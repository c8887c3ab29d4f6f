"""`equistein run`, `resume` and `list`."""

import dataclasses
import datetime
import difflib
import pathlib
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import numpy as np
import tyro

from equistein.data import DataError
from equistein.experiments import check_config, Experiment, EXPERIMENTS
from equistein.molecules import MissingRDKit
from equistein.runs import (
    config_from_json,
    config_to_json,
    FLOOR,
    joined,
    load_outcome,
    Outcome,
    RunFolder,
    save_outcome,
    UserError,
    Words,
    write_environment,
    write_figures,
    write_report,
    write_results,
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

    parsed = tyro.cli(
        Arguments,
        default=Arguments(config=defaults),
        args=list(rest),
        prog=f"equistein run {experiment.name} [--preset P]",
        description=f"{experiment.summary} ({experiment.figure}); preset {preset}",
    )
    if not 0 <= parsed.seed < 2**63:
        raise UserError(
            f"--seed must be an integer from 0 to 2^63 - 1, but got {parsed.seed}."
        )
    try:
        check_config(parsed.config)
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
        check_config(config)
        if not isinstance(seed, int) or seed < 0:
            raise ValueError(f"`seed` must be an integer >= 0, but got {seed!r}.")
        experiment.stages(config, seed)
    except DataError as error:
        raise UserError(str(error)) from None
    except (TypeError, ValueError) as error:
        message = f"{folder.path / 'config.json'} cannot be resumed: {error}."
        raise UserError(message) from None
    return execute(experiment, config, seed, folder)


def execute(experiment: Experiment, config: Any, seed: int, folder: RunFolder) -> int:
    """Run every stage that is not yet done, then write results and report."""
    write_environment(folder)
    kept = folder.path / "checkpoint"
    where = (kept,) if experiment.trains else ()
    stages = experiment.stages(config, seed, *where)
    outcomes: dict[str, Outcome] = {}
    began = time.perf_counter()
    try:
        for index, (name, stage) in enumerate(stages.items(), start=1):
            label = f"[{index}/{len(stages)}] {experiment.name}: {name}"
            outcome = load_outcome(folder, name)
            if outcome is None:
                print(f"{label} ...", flush=True)
                start = time.perf_counter()
                outcome = stage()
                save_outcome(folder, name, outcome)
                for state in kept.glob(f"{name}.*eqx"):
                    state.unlink()  # what the stage's training kept of itself
                print(f"{label}: {time.perf_counter() - start:.1f} s", flush=True)
            else:
                print(f"{label}: done before", flush=True)
            outcomes[name] = outcome
    except KeyboardInterrupt:
        finish(experiment, config, seed, folder, outcomes)
        print(
            f"\nStopped. {len(outcomes)} of {len(stages)} parts are finished and kept "
            f"in {folder.path}; go on with\n  equistein resume {folder.path}",
            file=sys.stderr,
        )
        return INTERRUPTED
    except NonFiniteError as error:
        finish(experiment, config, seed, folder, outcomes)
        folder.write_arrays(
            "failed.npz", {"particles": np.asarray(error.samples.particles)}
        )
        print(
            f"equistein: {error}\nThe last finite particles are in "
            f"{folder.path / 'failed.npz'}.",
            file=sys.stderr,
        )
        return 1
    except (CheckpointError, DataError, MissingRDKit) as error:
        raise UserError(str(error)) from None
    except DivergenceError as error:
        finish(experiment, config, seed, folder, outcomes)
        print(f"equistein: {error}", file=sys.stderr)
        return 1
    report = finish(experiment, config, seed, folder, outcomes)
    print(f"Finished in {time.perf_counter() - began:.0f} s. Report: {report}")
    return 0


def finish(
    experiment: Experiment,
    config: Any,
    seed: int,
    folder: RunFolder,
    outcomes: Mapping[str, Outcome],
) -> pathlib.Path | None:
    """Write what the finished stages gave; return the report's path."""
    outcomes = joined(outcomes)
    if not outcomes:
        return None
    for name, metrics in experiment.compare(config, outcomes).items():
        outcome = outcomes[name]
        outcomes[name] = dataclasses.replace(outcome, metrics=outcome.metrics | metrics)
    num_seeds = max(
        (value.size for out in outcomes.values() for value in out.metrics.values()
         if out is not outcomes.get(FLOOR)), default=1,
    )  # fmt: skip
    write_results(folder, outcomes, list(range(seed, seed + num_seeds)))
    write_figures(folder, experiment.draw(config, outcomes))
    preset = str(folder.read_config().get("preset"))
    return write_report(folder, words_of(experiment, preset))


def words_of(experiment: Experiment, preset: str) -> Words:
    """Return what the report of a run of an experiment says."""
    figure = experiment.figure[:1].upper() + experiment.figure[1:]
    return Words(
        title=experiment.name,
        lead=f"{experiment.summary}. {figure} of Jaini, Holdijk and Welling (2021); "
        f"preset {preset}.",
        notes=experiment.notes,
        captions=experiment.captions,
    )


def find_experiment(name: str) -> Experiment:
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


def take_preset(
    experiment: Experiment, arguments: Sequence[str]
) -> tuple[str, list[str]]:
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
