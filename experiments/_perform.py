"""Run an experiment part by part, resume it, and write what it found."""

import dataclasses
import pathlib
import time
from collections.abc import Callable, Mapping
from typing import Any

from equistein import runs
from equistein.samplers import NonFiniteError
from experiments._engine import Experiment, join_seeds


def perform(
    experiment: Experiment,
    config: Any,
    preset: str = "quick",
    seed: int = 0,
    folder: runs.RunFolder | None = None,
    say: Callable[[str], None] = lambda line: None,
) -> dict[str, runs.Outcome]:
    """Run every part that is not done yet, and write results and report.

    What is finished is written as well when a part is interrupted or fails, and the
    error continues; performing it again in the same folder continues there. Without a
    folder nothing is written. Return the outcome of each entry, with its seeds joined.
    """
    kept = None if folder is None else folder.path / "checkpoint"
    stages = experiment.stages(config, seed, kept)
    parts: dict[str, runs.Outcome] = {}
    try:
        for index, (name, stage) in enumerate(stages.items(), start=1):
            label = f"[{index}/{len(stages)}] {experiment.name}: {name}"
            done = None if folder is None else runs.load_part(folder, name)
            if done is None:
                say(f"{label} ...")
                start = time.perf_counter()
                parts[name] = stage()
                if folder is not None:
                    runs.save_part(folder, name, parts[name])
                    state = folder.path / "checkpoint" / f"{name}.training"
                    state.unlink(missing_ok=True)
                say(f"{label}: {time.perf_counter() - start:.1f} s")
            else:
                parts[name] = done
                say(f"{label}: done before")
            for event in parts[name].events:
                if event.get("event") == runs.WARNING:
                    say(f"warning: {name}: {event['text']}")
    except NonFiniteError as error:
        if folder is not None:
            error.samples.save(folder.path / "failed.npz")
        raise
    finally:
        outcomes = join_seeds(parts)
        for name, more in experiment.compare(config, outcomes).items():
            metrics = outcomes[name].metrics | more
            outcomes[name] = dataclasses.replace(outcomes[name], metrics=metrics)
        if folder is not None and outcomes:
            text = experiment.text(config, preset)
            left = ", ".join(sorted(set(stages) - set(parts)))
            if left:
                unfinished = f"Still to be done: {left}."
                text = dataclasses.replace(text, unfinished=unfinished)
            _write(experiment, config, seed, folder, outcomes, text)
    return outcomes


def _write(
    experiment: Experiment,
    config: Any,
    seed: int,
    folder: runs.RunFolder,
    outcomes: Mapping[str, runs.Outcome],
    text: runs.ReportText,
) -> None:
    """Write numbers, samples, figures and the report."""
    num_seeds = max(
        (values.size for name, outcome in outcomes.items() if name != runs.FLOOR
         for values in outcome.metrics.values()), default=1,
    )  # fmt: skip
    names = {name for outcome in outcomes.values() for name in outcome.metrics}
    about = {k: metric for k, metric in experiment.metrics.items() if k in names}
    runs.write_results(folder, outcomes, list(range(seed, seed + num_seeds)), about)
    runs.write_figures(folder, experiment.draw(config, outcomes))
    runs.write_report(folder, text)


def open_folder(
    experiment: Experiment, config: Any, preset: str, seed: int, path: pathlib.Path
) -> runs.RunFolder:
    """Return a new run folder, or that of the same run to continue it; and lock it.

    Raises:
        UserError: If the folder has something else in it, or cannot be written.
    """
    described = {
        "command": "experiment",
        "experiment": experiment.name,
        "preset": preset,
        "seed": seed,
        "settings": runs.settings_to_json(config),
    }
    if not (path / "config.json").is_file():
        folder = runs.RunFolder.create(path)
        folder.write_json("config.json", described)
    else:
        folder = runs.RunFolder.open(path)
        if folder.read_json("config.json") != described:
            raise runs.UserError(
                f"{path} holds a run with other settings: choose another --out, or "
                "give the same settings to continue it."
            )
        folder.hold()
    runs.write_environment(folder)
    return folder
