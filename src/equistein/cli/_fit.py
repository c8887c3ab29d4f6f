"""`equistein fit`: from a file of the user's to a learned density and its report."""

import dataclasses
import datetime
import pathlib
import shlex
import sys
from collections.abc import Callable, Mapping
from typing import Annotated, Any

import jax
import jax.random as jr
import numpy as np
import tyro

from equistein._files import digest
from equistein._limits import check_drawn, check_made, LimitError
from equistein._sharding import device_mesh
from equistein.cli._distributed import Distributed
from equistein.cli._fit_options import fit_settings, FitOptions, SETTINGS
from equistein.cli._output import answer, fail, say
from equistein.cli._signals import in_order, INTERRUPTED, was_signaled
from equistein.data import DataError
from equistein.models import (
    AbstractSettings,
    Dataset,
    FIT_METRICS,
    fit_text,
    for_dataset,
    judge,
    Model,
    network_of,
    of_formula,
    Problem,
    read_dataset,
)
from equistein.molecules import formula, MissingRDKit
from equistein.runs import (
    RunFolder,
    seed_outcome,
    settings_from_json,
    settings_to_json,
    UserError,
    write_environment,
    write_figures,
    write_history,
    write_report,
    write_results,
    write_text,
)
from equistein.samplers import NonFiniteError
from equistein.training import CheckpointError, DivergenceError, Fitted

_TRAINING = "checkpoint/training.npz"
_EPOCH = 200  # bytes of its history


@dataclasses.dataclass(frozen=True, kw_only=True)
class Fit:
    """Learn an invariant energy from data, and draw new points.

    Attributes:
        data: An .npy file; an .npz file with an array `x`, and classes `y` if there are
            any; a table, .csv, .tsv or .parquet; molecules, .xyz, .extxyz, .xyz.gz,
            .traj, .db or .pdb; or a folder of images, with a subfolder for each class
            if there are any.
        problem: What is fitted to what.
        out: The run folder, new or empty; by default one under runs.
        dry_run: Check everything and print what would be fitted, but write nothing.
        distributed: Which other processes share the work.
        options: How; what is left out depends on the network.
    """

    data: Annotated[pathlib.Path, tyro.conf.Positional]
    problem: Annotated[Problem, tyro.conf.arg(name="")]
    out: pathlib.Path | None = None
    dry_run: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    distributed: Annotated[Distributed, tyro.conf.arg(name="")] = Distributed()
    options: Annotated[FitOptions, tyro.conf.arg(name="")] = FitOptions()  # type: ignore

    def execute(self) -> int:
        """Check everything, make the run folder, and fit."""
        if self.distributed.distributed and self.out is None:
            raise UserError("--distributed needs --out, the same for all processes.")
        self.distributed.join()
        problem, settings, dataset, model = prepare(
            self.data, self.problem, self.options
        )
        if self.dry_run:
            return self._describe(problem, dataset, model)
        path = self.out or default_folder("fit")
        folder = RunFolder.create(path) if jax.process_index() == 0 else RunFolder(path)
        if jax.process_index() == 0:
            folder.write_json(
                "config.json",
                {
                    "command": "fit",
                    "data": str(self.data.resolve()),
                    "sha256": digest(self.data),
                    "shape": list(dataset.points.shape[1:]),
                    "num_points": len(dataset.points),
                    "num_held_out": dataset.num_held_out,
                    "problem": settings_to_json(problem),
                    "settings": settings_to_json(settings),
                },
            )
        return execute(folder, problem, dataset, model)

    def _describe(self, problem: Problem, dataset: Dataset, model: Model) -> int:
        if self.out is not None:
            RunFolder.create(self.out).remove_if_empty()
        say(announcement(problem, dataset))
        num_batches = model.num_epochs * model.epoch_batches
        answer(
            f"{num_batches} batches of {model.batch_size}, with the network "
            f"{problem.network}. Nothing is written.",
            num_points=len(dataset.points), num_held_out=dataset.num_held_out,
            num_batches=num_batches, network=problem.network,
        )  # fmt: skip
        return 0


def default_folder(name: str) -> pathlib.Path:
    """Return a new folder under runs, named after the time."""
    now = datetime.datetime.now().strftime("%Y%m%d-%H%M%S-%f")[:-3]
    return pathlib.Path("runs") / f"{name}-{now}"


def prepare(
    data: pathlib.Path, problem: Problem, options: Any
) -> tuple[Problem, AbstractSettings, Dataset, Model]:
    """Return the problem with its network, the settings, the data and the model.

    Args:
        data: The file.
        problem: What is fitted to what.
        options: The options that were given, or complete settings.

    Raises:
        UserError: If something is invalid.
    """
    try:
        batch_size = getattr(options, "batch_size", None)
        dataset = read_dataset(data, problem, batch_size or 2)
        problem = dataclasses.replace(problem, network=network_of(problem, dataset))
        settings = fit_settings(problem, options)
        if batch_size is None:  # small data have smaller batches
            num = min(settings.batch_size, len(dataset.points) - dataset.num_held_out)
            settings = dataclasses.replace(settings, batch_size=num)
        model = for_dataset(jr.key(problem.seed), dataset, problem, settings)
        train = dataset.in_memory().train()
        model.check(jr.key(problem.seed), train.points, train.labels)
        check_drawn(problem.num_samples, dataset.points.shape[1:])
        what = f"The history of {model.num_epochs} epochs"
        check_made(what, _EPOCH * model.num_epochs, "take a smaller `num_epochs`")
    except ValueError as error:
        raise UserError(str(error)) from None
    return problem, settings, dataset, model


def read_settings(folder: RunFolder) -> tuple[Problem, AbstractSettings]:
    """Return the problem and the settings of an earlier fit.

    Raises:
        UserError: If config.json is damaged.
    """
    described = folder.read_json("config.json")
    try:
        problem = settings_from_json(Problem, described.get("problem"))
        kind: Any = type(SETTINGS.get(str(problem.network)))
        settings = settings_from_json(kind, described.get("settings"))
    except (TypeError, ValueError) as error:
        raise UserError(
            f"{folder.path / 'config.json'} cannot be resumed: {error}."
        ) from None
    return problem, settings


def resume_fit(folder: RunFolder, distributed: Distributed) -> int:
    """Continue an interrupted fit, to the same numbers."""
    problem, settings = read_settings(folder)
    described = folder.read_json("config.json")
    path = pathlib.Path(str(described.get("data")))
    if not path.exists():
        raise UserError(f"There is no file {path}, which this run was started with.")
    if digest(path) != described.get("sha256"):
        raise UserError(
            f"{path} is not what this run was started with: restore it, or start a new "
            "run."
        )
    if folder.has("report.html") and folder.has(RunFolder.MODEL):
        print_answer(folder, path, "Finished before. ")
        return 0
    distributed.join()
    problem, _, dataset, model = prepare(path, problem, settings)
    return execute(folder, problem, dataset, model)


def execute(folder: RunFolder, problem: Problem, dataset: Dataset, model: Model) -> int:
    """Fit, draw samples, and write results and report."""
    say(announcement(problem, dataset))
    if jax.process_index() > 0:
        _fit(folder, problem, dataset, model)
        return 0
    write_environment(folder)
    return attempt(folder, lambda: _fit_and_judge(folder, problem, dataset, model))


def attempt(folder: RunFolder, work: Callable[[], None]) -> int:
    """Do the work of a run folder, and return the exit status.

    Raises:
        UserError: If an input is invalid, or another process works in the folder.
    """
    folder.hold()
    try:
        with in_order():
            work()
        return 0
    except (CheckpointError, DataError, LimitError, MissingRDKit) as error:
        raise UserError(str(error)) from None
    except (KeyboardInterrupt, Exception) as error:
        if isinstance(error, KeyboardInterrupt) or was_signaled():
            print(
                f"\nStopped. Finished work is kept in {folder.path}; continue with\n"
                f"  equistein resume {folder.path}",
                file=sys.stderr,
            )
            return INTERRUPTED
        if not isinstance(error, NonFiniteError | DivergenceError):
            raise
        fail("\n".join([str(error), *getattr(error, "__notes__", [])]))
        return 1
    finally:
        folder.release()


def announcement(problem: Problem, dataset: Dataset) -> str:
    """Return what is fitted to what, and what becomes of energies and forces."""
    train, about = dataset.train(), ""
    if dataset.num_classes:
        about = f", {dataset.num_classes} classes"
    if dataset.species:
        about = f", molecules of {formula(dataset.species)}"
    if dataset.formulas:
        names = ", ".join(map(formula, dataset.formulas))
        about = f", molecules of {len(dataset.formulas)} formulas ({names})"
    text = (
        f"Fitting {len(train.points)} points of shape "
        f"{tuple(train.points.shape[1:])}{about}, symmetry {problem.group}; "
        f"{dataset.num_held_out} are held out ..."
    )
    known = {"energies": dataset.energies, "forces": dataset.forces}
    names = [name for name, values in known.items() if values is not None]
    if names and dataset.kelvin is None:
        text += (
            f"\nThe {' and '.join(names)} in the file are not used: to learn from them "
            "give --kelvin, the temperature."
        )
    elif names:
        learned = [n for n in names if n == "forces" or dataset.labels is not None]
        text += f"\nLearning from {' and '.join(learned)} at {dataset.kelvin:g} K"
        text += "; energies are compared only." if learned != names else "."
    return text


def _fit(folder: RunFolder, problem: Problem, dataset: Dataset, model: Model) -> Fitted:
    _, fit_key, _ = jr.split(jr.key(problem.seed), 3)
    train = dataset.train()
    return model.fit(
        fit_key, train.points, train.labels, checkpoint=folder.path / _TRAINING,
        mesh=device_mesh() if jax.process_count() > 1 else None,
        progress=jax.process_index() == 0,
    )  # fmt: skip


def _fit_and_judge(
    folder: RunFolder, problem: Problem, dataset: Dataset, model: Model
) -> None:
    *_, judge_key = jr.split(jr.key(problem.seed), 3)
    try:
        fitted = _fit(folder, problem, dataset, model)
        fitted.save(folder.path / RunFolder.MODEL)
        if dataset.formulas:
            first = formula(dataset.formulas[0])
            say(f"Samples are of the most frequent formula, {first}.")
            fitted, dataset = of_formula(fitted, 0), dataset.of_formula(0)
        say(f"Drawing {problem.num_samples} samples ...")
        outcomes, figures = judge(
            judge_key, fitted, dataset.in_memory(), num_samples=problem.num_samples,
            ais_steps=problem.ais_steps, progress=True,
        )  # fmt: skip
    except DivergenceError as error:
        last, nothing = error.fitted, np.zeros((0, 1))
        epochs = seed_outcome({}, nothing, history=last.history, events=last.events)
        write_history(folder, {"model": epochs})
        error.add_note(
            f"Every epoch and every roll-back is in {folder.path / 'history.jsonl'}, "
            f"the last good state in {folder.path / _TRAINING}."
        )
        raise
    except NonFiniteError as error:
        error.add_note("The model is learned: fit again with smaller step sizes.")
        raise
    described = folder.read_json("config.json")
    write_results(folder, outcomes, [problem.seed], FIT_METRICS)
    write_figures(folder, figures)
    write_text(
        folder,
        fit_text(
            fitted, outcomes["model"].metrics,
            f"equistein fit: {pathlib.Path(described['data']).name}",
            _lead(described, problem, dataset), kelvin=problem.kelvin,
            command=shlex.join(without_out(["equistein", *sys.argv[1:]])),
        ),
    )  # fmt: skip
    write_report(folder)
    print_answer(folder, pathlib.Path(described["data"]))


def _lead(described: Mapping[str, Any], problem: Problem, dataset: Dataset) -> str:
    kind = (
        "A joint energy of points and classes" if dataset.num_classes else "An energy"
    )
    num, held_out = described["num_points"], described["num_held_out"]
    names = ""
    if dataset.columns:
        names = f" Columns: {', '.join(dataset.columns)}."
    if dataset.classes:
        names += f" Classes: {', '.join(dataset.classes)}."
    return (
        f"{kind} with the symmetry {problem.group}, learned from {num - held_out} of "
        f"{num} points of shape {tuple(described['shape'])}; the others are held out."
        f"{names}"
    )


def without_out(words: list[str]) -> list[str]:
    """Return a command without its output folder, which is not empty afterwards."""
    left, rest = [], iter(words)
    for word in rest:
        if word == "--out":
            next(rest, None)
        elif not word.startswith("--out="):
            left.append(word)
    return left


def print_answer(folder: RunFolder, data: pathlib.Path, prefix: str = "") -> None:
    """Print where the report of a finished fit is, and how to draw more."""
    report, model = folder.path / "report.html", folder.path / RunFolder.MODEL
    ending = "" if data.is_dir() else data.suffix.lower()  # of images, a folder
    new = f"new{'.xyz.gz' if ending == '.gz' else ending}"
    answer(
        f"{prefix}Report: {report}",
        folder=folder.path, report=report, model=model,
        metrics=folder.read_json("metrics.json"),
    )  # fmt: skip
    say(f"Draw more:  equistein sample {folder.path} --num-samples 512 --out {new}")
