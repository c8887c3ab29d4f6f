"""`equistein fit`: a learned density of the user's own data."""

import dataclasses
import hashlib
import pathlib
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import jax.random as jr
import numpy as np
import tyro

from equistein.cli._given import given
from equistein.cli._run import default_folder, INTERRUPTED
from equistein.cli._words import words_of_fit
from equistein.models import (
    AbstractSettings,
    ContrastiveSettings,
    Dataset,
    DenoisingSettings,
    for_dataset,
    judge,
    Model,
    network_of,
    of_formula,
    Problem,
    read_dataset,
)
from equistein.molecules import formula
from equistein.runs import (
    config_from_json,
    config_to_json,
    Outcome,
    RunFolder,
    UserError,
    write_environment,
    write_figures,
    write_history,
    write_report,
    write_results,
)
from equistein.samplers import NonFiniteError
from equistein.training import CheckpointError, DivergenceError, Fitted

MODEL = "checkpoint/model.eqx"
_TRAINING = "checkpoint/training.eqx"
_SETTINGS = {"features": ContrastiveSettings(), "graph": DenoisingSettings()}


def fit_arguments(arguments: Sequence[str]) -> Any:
    """Return the class of the arguments of `equistein fit`, with its settings.

    Args:
        arguments: The command line, which tells what the energy is made of.
    """
    molecules = any(argument.lower().endswith(".xyz") for argument in arguments)
    network = given(arguments, "network") or ("graph" if molecules else "features")
    defaults = _SETTINGS.get(network, _SETTINGS["features"])

    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Fit:
        """Learn an invariant energy from data, and draw new points.

        A graph network has other settings: equistein fit --network graph --help.

        Attributes:
            data: An .npy file; an .npz file with an array `x`, and classes `y` if there
                are any; or an .xyz file.
            problem: What is fitted to what.
            out: The run folder, new or empty; by default one under runs.
            settings: How.
        """

        data: Annotated[pathlib.Path, tyro.conf.Positional]
        problem: Annotated[Problem, tyro.conf.arg(name="")]
        out: pathlib.Path | None = None
        settings: Annotated[type(defaults), tyro.conf.arg(name="")] = defaults  # type: ignore

        def execute(self) -> int:
            return start(self.data, self.problem, self.settings, self.out)

    return Fit


def start(
    data: pathlib.Path,
    problem: Problem,
    settings: AbstractSettings,
    out: pathlib.Path | None,
) -> int:
    """Check everything, make the run folder, and fit."""
    dataset, model = prepared(data, problem, settings)
    problem = dataclasses.replace(problem, network=network_of(problem, dataset))
    folder = RunFolder.create(out or default_folder("fit"))
    folder.write_config(
        {
            "command": "fit",
            "data": str(data.resolve()),
            "sha256": hashlib.sha256(data.read_bytes()).hexdigest(),
            "shape": list(dataset.points.shape[1:]),
            "species": list(dataset.species) if dataset.species else None,
            "formulas": [list(row) for row in dataset.formulas or ()] or None,
            "num_classes": dataset.num_classes,
            "num_points": len(dataset.points),
            "num_held_out": dataset.num_held_out,
            "problem": config_to_json(problem),
            "settings": config_to_json(settings),
        }
    )
    return execute(folder, problem, dataset, model)


def prepared(
    data: pathlib.Path, problem: Problem, settings: AbstractSettings
) -> tuple[Dataset, Model]:
    """Return the data and the untrained model, all checked.

    Raises:
        UserError: If something does not do.
    """
    try:
        dataset = read_dataset(data, problem, settings.batch_size)
        model = for_dataset(jr.key(problem.seed), dataset, problem, settings)
        train = dataset.train()
        model.check(jr.key(problem.seed), train.points, train.labels)
    except ValueError as error:
        raise UserError(str(error)) from None
    return dataset, model


def resume_fit(folder: RunFolder) -> int:
    """Go on with an interrupted fit, to the same numbers."""
    described = folder.read_config()
    values = described.get("problem")
    try:
        problem = config_from_json(Problem(group="trivial"), values)
        like = _SETTINGS.get(problem.network, _SETTINGS["features"])
        settings = config_from_json(like, described.get("settings"))
    except (TypeError, ValueError) as error:
        message = f"{folder.path / 'config.json'} cannot be resumed: {error}"
        raise UserError(message.rstrip(".") + ".") from None
    path = pathlib.Path(str(described.get("data")))
    if not path.is_file():
        raise UserError(f"There is no file {path}, which this run was started with.")
    if hashlib.sha256(path.read_bytes()).hexdigest() != described.get("sha256"):
        raise UserError(
            f"{path} is no longer the file this run was started with; restore it, or "
            "start a new run."
        )
    dataset, model = prepared(path, problem, settings)
    return execute(folder, problem, dataset, model)


def execute(folder: RunFolder, problem: Problem, dataset: Dataset, model: Model) -> int:
    """Fit, draw samples, and write results and report."""
    write_environment(folder)
    print(_announcement(problem, dataset), flush=True)
    try:
        _fit_and_judge(folder, problem, dataset, model)
    except KeyboardInterrupt:
        print(
            f"\nStopped. What was learned so far is kept in {folder.path}; go on with\n"
            f"  equistein resume {folder.path}",
            file=sys.stderr,
        )
        return INTERRUPTED
    except CheckpointError as error:
        raise UserError(str(error)) from None
    except DivergenceError as error:
        write_history(folder, {"model": _unfinished(error.fitted)})
        print(
            f"equistein: {error}\nEvery epoch and every roll-back is in "
            f"{folder.path / 'history.jsonl'}, the last good state in "
            f"{folder.path / _TRAINING}.",
            file=sys.stderr,
        )
        return 1
    except NonFiniteError as error:
        print(
            f"equistein: The model is learned, but no samples could be drawn: {error} "
            "Fit anew with smaller step sizes.",
            file=sys.stderr,
        )
        return 1
    suffix = pathlib.Path(str(folder.read_config()["data"])).suffix.lower()
    print(f"Report: {folder.path / 'report.html'}")
    print(
        f"Draw more:  equistein sample {folder.path} --num-samples 512 "
        f"--out new{suffix}"
    )
    return 0


def _fit_and_judge(
    folder: RunFolder, problem: Problem, dataset: Dataset, model: Model
) -> None:
    _, fit_key, result_key = jr.split(jr.key(problem.seed), 3)
    train = dataset.train()
    fitted = model.fit(
        fit_key, train.points, train.labels, checkpoint=folder.path / _TRAINING,
        progress=True,
    )  # fmt: skip
    fitted.save(folder.path / MODEL)
    if dataset.formulas:
        print(f"The most frequent formula, {formula(dataset.formulas[0])}, is drawn.")
        fitted, dataset = of_formula(fitted, 0), dataset.of_formula(0)
    print(f"Drawing {problem.num_samples} samples ...", flush=True)
    judgement = judge(
        result_key, fitted, dataset, num_samples=problem.num_samples,
        ais_steps=problem.ais_steps, progress=True,
    )  # fmt: skip
    write_results(folder, judgement.outcomes, [problem.seed])
    write_figures(folder, judgement.figures)
    write_report(folder, words_of_fit(folder.read_config()))


def _announcement(problem: Problem, dataset: Dataset) -> str:
    train, about = dataset.train(), ""
    if dataset.num_classes:
        about = f", {dataset.num_classes} classes"
    if dataset.species:
        about = f", molecules of {formula(dataset.species)}"
    if dataset.formulas:
        names = ", ".join(map(formula, dataset.formulas))
        about = f", molecules of {len(dataset.formulas)} formulas ({names})"
    return (
        f"Fitting {len(train.points)} points of shape "
        f"{tuple(train.points.shape[1:])}{about}, symmetry {problem.group}; "
        f"{dataset.num_held_out} are held out ..."
    )


def _unfinished(fitted: Fitted) -> Outcome:
    """Return the epochs of a fit that came to no results."""
    history = {name: values[None] for name, values in fitted.history.items()}
    history["step"] = history.pop("epoch")
    return Outcome(
        metrics={}, samples=np.zeros((0, 1)), history=history, events=fitted.events
    )
