"""Run an experiment: part by part, from Python or from the command line."""

import contextlib
import dataclasses
import pathlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from equistein._cores import num_shares
from equistein._durations import in_words
from equistein.experiments.engine._experiment import Experiment
from equistein.experiments.engine._one_a_core import one_a_core
from equistein.experiments.engine._one_by_one import one_by_one
from equistein.experiments.engine._time_left import time_left
from equistein.runs import (
    config_to_json,
    FLOOR,
    joined,
    load_outcome,
    Outcome,
    RunFolder,
    save_outcome,
    UserError,
    WARNING,
    write_conclusion,
    write_environment,
    write_figures,
    write_parts,
    write_report,
    write_results,
)
from equistein.samplers import NonFiniteError


def perform(
    experiment: Experiment,
    config: Any,
    seed: int,
    folder: RunFolder | None,
    *,
    preset: str = "",
    tell: Callable[[str], None] = lambda line: None,
    warn: Callable[[str], None] = lambda text: None,
) -> dict[str, Outcome]:
    """Run every part that is not yet done, and write results and report.

    What is finished is written as well when a part is interrupted or fails, and the
    error goes on; performing it again in the same folder goes on from there.

    Several processes of `jax.distributed` make a part each, at a time, and each of them
    has all outcomes; the first writes the results. Of one process the cores make a part
    each, if the experiment tells them to.

    Args:
        experiment: The experiment.
        config: Its configuration.
        seed: The first seed.
        folder: The run folder, or None to keep nothing.
        preset: What the configuration is called in the report.
        tell: What is told of each part.
        warn: What is told of what samplers warn of, by the part.

    Returns:
        The outcome of each entry, with its seeds joined.
    """
    kept = None if folder is None else folder.path / "checkpoint"
    if folder is not None:
        write_environment(folder)
    stages = experiment.stages(config, seed, kept)
    parts: dict[str, Outcome] = {}
    left: dict[str, str] = {}
    try:
        for index, name in enumerate(stages, start=1):
            label = f"[{index}/{len(stages)}] {experiment.name}: {name}"
            done = None if folder is None else load_outcome(folder, name)
            if done is None:
                left[name] = label
            else:
                tell(f"{label}: done before")
                parts[name] = done
                _pass_on(warn, name, done)
        at_once, is_alone = jax.process_count(), jax.process_count() == 1
        if experiment.one_a_core and is_alone and left:
            at_once = num_shares(len(left), jnp.zeros(()))
        taken: dict[str, float] = {}

        def begins(name: str) -> None:
            tell(f"{left[name]} ...")

        def ends(name: str, outcome: Outcome, seconds: float) -> None:
            parts[name], taken[name] = outcome, seconds
            if folder is not None:
                save_outcome(folder, name, outcome)
                for state in (folder.path / "checkpoint").glob(f"{name}.*eqx"):
                    state.unlink()  # what the part's training kept of itself
            to_come = [name for name in left if name not in taken]
            rest = in_words(time_left(taken, to_come, at_once))
            hint = f", about {rest} left" if to_come else ""
            tell(f"{left[name]}: {seconds:.1f} s{hint}")
            _pass_on(warn, name, outcome)

        to_make = {name: stages[name] for name in left}
        if is_alone and at_once > 1:
            one_a_core(to_make, at_once, begins, ends)
        else:
            one_by_one(to_make, begins, ends)
    except NonFiniteError as error:
        if folder is not None:
            particles = np.asarray(error.samples.particles)
            folder.write_arrays("failed.npz", {"particles": particles})
        raise
    finally:
        in_order = {name: parts[name] for name in stages if name in parts}
        with _doubting(kept, [name for name in parts if name not in left]):
            outcomes = compared(experiment, config, in_order)
            if folder is not None and outcomes and jax.process_index() == 0:
                write_parts(folder, list(stages), list(in_order))
                write_outcomes(experiment, config, seed, folder, outcomes, preset)
    told = experiment.conclude(config, outcomes)
    if told:
        tell(told)
    return outcomes


@contextlib.contextmanager
def _doubting(folder: pathlib.Path | None, read: Sequence[str]) -> Iterator[None]:
    """Raise a `UserError` if results cannot be made of parts, some of which were read.

    What was edited by hand can be of the right kind, and yet not fit to the rest.
    """
    try:
        yield
    except (IndexError, KeyError, TypeError, ValueError) as error:
        if not read:
            raise
        raise UserError(
            f"The finished parts in {folder} do not fit together ({error}). If one of "
            f"{', '.join(read)} was changed, delete it and resume."
        ) from error


def compared(
    experiment: Experiment, config: Any, parts: Mapping[str, Outcome]
) -> dict[str, Outcome]:
    """Return the outcomes with seeds joined, and the metrics that need several."""
    outcomes = joined(parts)
    for name, metrics in experiment.compare(config, outcomes).items():
        outcome = outcomes[name]
        outcomes[name] = dataclasses.replace(outcome, metrics=outcome.metrics | metrics)
    return outcomes


def write_outcomes(
    experiment: Experiment,
    config: Any,
    seed: int,
    folder: RunFolder,
    outcomes: Mapping[str, Outcome],
    preset: str,
) -> pathlib.Path:
    """Write numbers, samples, figures and the report; return the report's path."""
    num_seeds = max(
        (values.size for name, outcome in outcomes.items() if name != FLOOR
         for values in outcome.metrics.values()), default=1,
    )  # fmt: skip
    write_results(folder, outcomes, list(range(seed, seed + num_seeds)))
    write_figures(folder, experiment.draw(config, outcomes))
    write_conclusion(folder, experiment.conclude(config, dict(outcomes)))
    return write_report(folder, experiment.words(config, preset, seed))


def create_folder(
    experiment: Experiment, config: Any, seed: int, path: pathlib.Path, preset: str
) -> RunFolder:
    """Make the folder of a new run, which says what is run.

    Raises:
        UserError: If there is something in it, or it cannot be written.
    """
    described = config_to_json(config)
    folder = RunFolder.create(path)
    folder.write_config(
        {
            "command": "run",
            "experiment": experiment.name,
            "preset": preset,
            "seed": seed,
            "config": described,
        }
    )
    return folder


def _pass_on(warn: Callable[[str], None], name: str, outcome: Outcome) -> None:
    """Tell what the samplers of a part have warned of."""
    for event in outcome.events:
        if event.get("event") == WARNING:
            warn(f"{name}: {event['text']}")
