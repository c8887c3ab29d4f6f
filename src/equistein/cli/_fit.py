"""`equistein fit`: a learned density of the user's own data."""

import dataclasses
import pathlib
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import jax
import jax.random as jr
import numpy as np
import tyro

from equistein._durations import in_words
from equistein._files import digest
from equistein._limits import check_drawn
from equistein._sharding import device_mesh
from equistein.cli._announcement import announcement
from equistein.cli._attempt import attempt
from equistein.cli._estimate import check_time, estimated
from equistein.cli._fit_settings import FIT_SETTINGS
from equistein.cli._given import given
from equistein.cli._hosts import agree, drop, Hosts, own_path, reopened, together
from equistein.cli._output import answer, say
from equistein.cli._run import default_folder, is_finished
from equistein.cli._words import words_of_fit
from equistein.data import has_labels
from equistein.models import (
    AbstractSettings,
    Dataset,
    for_dataset,
    judge,
    Model,
    network_of,
    of_formula,
    Problem,
    read_dataset,
    usual_network,
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

MODEL = RunFolder.MODEL
_TRAINING = "checkpoint/training.eqx"


def fit_arguments(arguments: Sequence[str]) -> Any:
    """Return the class of the arguments of `equistein fit`, with its settings.

    The command line tells what the energy is made of, and this which settings it has.
    """
    named = given(arguments, "label") is not None or any(map(has_labels, arguments))
    classes = named and "--no-labels" not in arguments
    usual = usual_network(given(arguments, "group"), classes)
    network = given(arguments, "network") or usual
    defaults = FIT_SETTINGS.get(network, FIT_SETTINGS["features"])

    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Fit:
        """Learn an invariant energy from data, and draw new points.

        Other networks have other settings: equistein fit --network graph --help, or
        --network unet.

        Attributes:
            data: An .npy file; an .npz file with an array `x`, and classes `y` if there
                are any; a table, .csv, .tsv or .parquet; molecules, .xyz, .extxyz,
                .xyz.gz, .traj, .db or .pdb; or a folder of images, with a subfolder for
                each class if there are any.
            problem: What is fitted to what.
            out: The run folder, new or empty; by default one under runs.
            dry_run: Check everything and time a few batches, but write nothing.
            hosts: Which other processes share the work.
            settings: How.
        """

        data: Annotated[pathlib.Path, tyro.conf.Positional]
        problem: Annotated[Problem, tyro.conf.arg(name="")]
        out: pathlib.Path | None = None
        dry_run: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
        hosts: Annotated[Hosts, tyro.conf.arg(name="")] = Hosts()
        settings: Annotated[type(defaults), tyro.conf.arg(name="")] = defaults  # type: ignore

        def execute(self) -> int:
            if self.dry_run:
                return tell_time(self.data, self.problem, self.settings, self.out)
            return start(self.data, self.problem, self.settings, self.out)

        def expected_seconds(self) -> float:
            data, model = prepared(self.data, self.problem, self.settings)
            return estimated(model, data, self.problem.seed).seconds

    return Fit


def tell_time(
    data: pathlib.Path,
    problem: Problem,
    settings: AbstractSettings,
    out: pathlib.Path | None,
) -> int:
    """Check everything, and print what would be fitted and how long it would take."""
    dataset, model = prepared(data, problem, settings)
    if out is not None:
        RunFolder.create(out).remove_if_empty()
    say(announcement(problem, dataset))
    found = estimated(model, dataset, problem.seed)
    answer(
        f"{found.num_batches} batches of {model.batch_size} would take about "
        f"{in_words(found.training)}, after {in_words(found.compiling)} of compiling; "
        "samples and their judgement come on top. Nothing is written.",
        num_points=len(dataset.points), num_held_out=dataset.num_held_out,
        seconds_of_training=found.training, seconds_of_compiling=found.compiling,
    )  # fmt: skip
    return 0


def start(
    data: pathlib.Path,
    problem: Problem,
    settings: AbstractSettings,
    out: pathlib.Path | None,
) -> int:
    """Check everything, make the run folder, and fit."""
    dataset, model = together(lambda: prepared(data, problem, settings))
    check_time(model, dataset, problem.seed)
    problem = dataclasses.replace(problem, network=network_of(problem, dataset))
    fingerprint = digest(data)
    agree("data", fingerprint.encode())
    path = own_path(out or default_folder("fit"))
    folder = together(lambda: RunFolder.create(path))
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
            **dataset.names(),
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
        sizes = {type(each): each.batch_size for each in FIT_SETTINGS.values()}
        usual = sizes.get(type(settings)) == settings.batch_size
        dataset = read_dataset(data, problem, 2 if usual else settings.batch_size)
        if usual:  # nobody chose it: small data have smaller batches
            num = min(settings.batch_size, len(dataset.points) - dataset.num_held_out)
            settings = dataclasses.replace(settings, batch_size=num)
        model = for_dataset(jr.key(problem.seed), dataset, problem, settings)
        train = dataset.in_memory().train()
        model.check(jr.key(problem.seed), train.points, train.labels)
        check_drawn(problem.num_samples, dataset.points.shape[1:])
    except ValueError as error:
        raise UserError(str(error)) from None
    return dataset, model


def read_fit(described: Mapping[str, Any]) -> tuple[Problem, AbstractSettings]:
    """Return the problem and the settings of a fit that config.json describes.

    Raises:
        ValueError: If they are not what they should be.
    """
    problem = config_from_json(Problem(group="trivial"), described.get("problem"))
    like = FIT_SETTINGS.get(problem.network, FIT_SETTINGS["features"])
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
    if is_finished(folder, ()) and (folder.path / MODEL).is_file():
        answer_fit(folder, described, "Finished before. ")
        return 0
    folder = reopened(folder)
    return execute(folder, problem, *prepared(path, problem, settings))


def execute(folder: RunFolder, problem: Problem, dataset: Dataset, model: Model) -> int:
    """Fit, draw samples, and write results and report."""
    write_environment(folder)
    say(announcement(problem, dataset))
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
            say(f"The most frequent formula, {first}, is drawn.")
            fitted, dataset = of_formula(fitted, 0), dataset.of_formula(0)
        say(f"Drawing {problem.num_samples} samples ...")
        judgement = judge(
            result_key, fitted, dataset.in_memory(), num_samples=problem.num_samples,
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
    write_report(folder, words_of_fit(described))
    answer_fit(folder, described)


def answer_fit(folder: RunFolder, described: Mapping[str, Any], told: str = "") -> None:
    """Print where the report of a finished fit is, and how to draw more."""
    report, model = folder.path / "report.html", folder.path / MODEL
    data = pathlib.Path(str(described["data"]))
    ending = "" if data.is_dir() else data.suffix.lower()  # of images, a folder
    new = f"new{'.xyz.gz' if ending == '.gz' else ending}"
    answer(
        f"{told}Report: {report}",
        folder=folder.path, report=report, model=model,
        metrics=folder.read_json("metrics.json"),
    )  # fmt: skip
    say(f"Draw more:  equistein sample {folder.path} --num-samples 512 --out {new}")
