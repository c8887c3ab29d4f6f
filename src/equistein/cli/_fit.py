"""`equistein fit`: a learned density of the user's own data."""

import dataclasses
import pathlib
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import jax
import jax.random as jr
import numpy as np
import tyro

from equistein._devices import device_mesh
from equistein._files import digest
from equistein.cli._attempt import attempt
from equistein.cli._given import given
from equistein.cli._hosts import agree, created, drop, Hosts, reopened
from equistein.cli._run import default_folder
from equistein.cli._words import words_of_fit
from equistein.data import has_labels
from equistein.models import (
    AbstractSettings,
    ContrastiveSettings,
    Dataset,
    DenoisingSettings,
    for_dataset,
    ImageSettings,
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
    RunFolder,
    seed_outcome,
    UserError,
    write_environment,
    write_figures,
    write_history,
    write_report,
    write_results,
)
from equistein.samplers import NonFiniteError
from equistein.training import DivergenceError

MODEL = "checkpoint/model.eqx"
_TRAINING = "checkpoint/training.eqx"
_SETTINGS = {
    "features": ContrastiveSettings(),
    "graph": DenoisingSettings(),
    "unet": ImageSettings(),
}


def fit_arguments(arguments: Sequence[str]) -> Any:
    """Return the class of the arguments of `equistein fit`, with its settings.

    The command line tells what the energy is made of, and this which settings it has.
    """
    clouds = given(arguments, "group") == "point-cloud"
    classes = "--no-labels" not in arguments and any(map(has_labels, arguments))
    usual = "graph" if clouds and not classes else "features"
    network = given(arguments, "network") or usual
    defaults = _SETTINGS.get(network, _SETTINGS["features"])

    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Fit:
        """Learn an invariant energy from data, and draw new points.

        Other networks have other settings: equistein fit --network graph --help, or
        --network unet for images.

        Attributes:
            data: An .npy file; an .npz file with an array `x`, and classes `y` if there
                are any; an .xyz file; or a folder of images, with a subfolder for each
                class if there are any.
            problem: What is fitted to what.
            out: The run folder, new or empty; by default one under runs.
            hosts: Which other processes share the work.
            settings: How.
        """

        data: Annotated[pathlib.Path, tyro.conf.Positional]
        problem: Annotated[Problem, tyro.conf.arg(name="")]
        out: pathlib.Path | None = None
        hosts: Annotated[Hosts, tyro.conf.arg(name="")] = Hosts()
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
    fingerprint = digest(data)
    agree("data", fingerprint.encode())
    folder = created(out or default_folder("fit"))
    folder.write_config(
        {
            "command": "fit",
            "data": str(data.resolve()),
            "sha256": fingerprint,
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


def read_fit(described: Mapping[str, Any]) -> tuple[Problem, AbstractSettings]:
    """Return the problem and the settings of a fit that config.json describes.

    Raises:
        ValueError: If they are not what they should be.
    """
    problem = config_from_json(Problem(group="trivial"), described.get("problem"))
    like = _SETTINGS.get(problem.network, _SETTINGS["features"])
    return problem, config_from_json(like, described.get("settings"))


def resume_fit(folder: RunFolder, problem: Problem, settings: AbstractSettings) -> int:
    """Go on with an interrupted fit, to the same numbers."""
    described = folder.read_config()
    path = pathlib.Path(str(described.get("data")))
    if not path.exists():
        raise UserError(f"There is no file {path}, which this run was started with.")
    if digest(path) != described.get("sha256"):
        raise UserError(
            f"{path} is no longer what this run was started with; restore it, or "
            "start a new run."
        )
    folder = reopened(folder)
    return execute(folder, problem, *prepared(path, problem, settings))


def execute(folder: RunFolder, problem: Problem, dataset: Dataset, model: Model) -> int:
    """Fit, draw samples, and write results and report."""
    write_environment(folder)
    print(_announcement(problem, dataset), flush=True)
    return attempt(folder, lambda: _fit_and_judge(folder, problem, dataset, model))


def _fit_and_judge(
    folder: RunFolder, problem: Problem, dataset: Dataset, model: Model
) -> None:
    _, fit_key, result_key = jr.split(jr.key(problem.seed), 3)
    train, training = dataset.train(), folder.path / _TRAINING
    try:
        fitted = model.fit(
            fit_key, train.points, train.labels, checkpoint=training,
            mesh=device_mesh() if jax.process_count() > 1 else None,
            progress=jax.process_index() == 0,
        )  # fmt: skip
        if jax.process_index():
            drop(folder)
            return
        fitted.save(folder.path / MODEL)
        if dataset.formulas:
            first = formula(dataset.formulas[0])
            print(f"The most frequent formula, {first}, is drawn.")
            fitted, dataset = of_formula(fitted, 0), dataset.of_formula(0)
        print(f"Drawing {problem.num_samples} samples ...", flush=True)
        judgement = judge(
            result_key, fitted, dataset, num_samples=problem.num_samples,
            ais_steps=problem.ais_steps, progress=True,
        )  # fmt: skip
    except DivergenceError as error:
        kept, nothing = error.fitted, np.zeros((0, 1))
        epochs = seed_outcome({}, nothing, history=kept.history, events=kept.events)
        write_history(folder, {"model": epochs})
        error.add_note(
            f"Every epoch and every roll-back is in {folder.path / 'history.jsonl'}, "
            f"the last good state in {training}."
        )
        raise
    except NonFiniteError as error:
        error.add_note("The model is learned: fit anew with smaller step sizes.")
        raise
    write_results(folder, judgement.outcomes, [problem.seed])
    write_figures(folder, judgement.figures)
    described = folder.read_config()
    print(f"Report: {write_report(folder, words_of_fit(described))}")
    new = f"new{pathlib.Path(str(described['data'])).suffix.lower() or '.npz'}"
    print(f"Draw more:  equistein sample {folder.path} --num-samples 512 --out {new}")


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
