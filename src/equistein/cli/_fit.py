"""`equistein fit`: from a file to a learned density and its report."""

import dataclasses
import datetime
import os
import pathlib
import shlex
import sys
from collections.abc import Collection
from typing import Annotated, Any

import docstring_parser
import jax
import jax.random as jr
import numpy as np
import tyro

from equistein import models, runs
from equistein._files import digest
from equistein._limits import check_memory, check_sample_memory
from equistein._sharding import device_mesh
from equistein.cli._output import answer, say
from equistein.cli._sample import write_samples
from equistein.cli._signals import run_locked
from equistein.data import Dataset
from equistein.models import (
    AbstractSettings,
    ComparedModel,
    LinearModel,
    Model,
    Problem,
    SETTINGS,
)
from equistein.molecules import formula, has_rdkit, is_molecules, perceive
from equistein.runs import RunFolder, UserError
from equistein.samplers import NonFiniteError
from equistein.training import DivergenceError, Fitted

_CHECKPOINT = "checkpoint/training.npz"
_BYTES_PER_EPOCH = 200  # of the history
_TIME_LIMITS: Any = {
    "initialization_timeout": 60,  # seconds to find each other
    "heartbeat_timeout_seconds": 40,  # until a silent process counts as lost
}


def _field(name: str, kind: Any) -> tuple[str, Any, Any]:
    """Return a dataclass field for a setting, which is None if it is not given."""
    # Its help is its description in the docstring, for each network if these differ,
    # with each default.
    defaults = {k: getattr(s, name) for k, s in SETTINGS.items() if hasattr(s, name)}
    networks: dict[str, list[str]] = {}
    for network in defaults:
        text = _description(type(SETTINGS[network]), name)
        networks.setdefault(text, []).append(network)
    words = [f"For {', '.join(names)}: {text}" for text, names in networks.items()]
    words = words if len(networks) > 1 else [*networks]
    hint = f"(default: {'; '.join(f'{k} {v}' for k, v in defaults.items())})"
    text = tyro.conf.arg(help=" ".join(words), help_behavior_hint=hint)
    return name, Annotated[kind | None, text], None


def _description(kind: type, name: str) -> str:
    """Return what the docstring of a class, or of one it extends, says of a setting."""
    for cls in kind.__mro__:
        for param in docstring_parser.parse(cls.__doc__ or "").params:
            if param.arg_name == name:
                return " ".join((param.description or "").split())
    return ""


def options_of(cls: Any, names: Collection[str]) -> Any:
    """Return a dataclass of some fields of another, with their help and defaults."""
    fields = []
    for each in dataclasses.fields(cls):
        if each.name in names:
            text = tyro.conf.arg(help=_description(cls, each.name))
            fields.append((each.name, Annotated[each.type, text], each.default))
    return dataclasses.make_dataclass(f"Some{cls.__name__}", fields, frozen=True)


_FIELDS = {
    field.name: _field(field.name, field.type)
    for settings in SETTINGS.values()
    for field in dataclasses.fields(settings)
}
FitOptions = dataclasses.make_dataclass("FitOptions", _FIELDS.values(), frozen=True)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Distributed:
    """How several processes that run the same command, with the same --out, meet.

    Attributes:
        distributed: This is one of several processes. Those that Slurm, Kubernetes or a
            pod of TPUs began find each other; others need the next three.
        coordinator: The address of the first process, host:port.
        num_processes: The number of processes.
        process_id: The number of this one, from 0.
    """

    distributed: bool = False
    coordinator: str | None = None
    num_processes: int | None = None
    process_id: int | None = None

    def join(self) -> None:
        """Find the other processes, if there are some."""
        if not self.distributed:
            return
        try:
            address = self.coordinator, self.num_processes, self.process_id
            jax.distributed.initialize(*address, **_TIME_LIMITS)
        except (RuntimeError, ValueError) as error:
            raise UserError(
                f"The other processes were not found: {str(error).splitlines()[0]} "
                "Start all within a minute, each with --coordinator HOST:PORT, "
                "--num-processes and --process-id, which Slurm and Kubernetes set."
            ) from None
        if jax.process_index():
            sys.stdout = open(os.devnull, "w")  # the first one prints


@dataclasses.dataclass(frozen=True, kw_only=True)
class Fit:
    """Learn an invariant energy from data, and draw new points.

    Attributes:
        data: An .npy file; an .npz file with an array `x`, and classes `y` if there are
            any; a table, .csv, .tsv or .parquet; molecules, .xyz, .extxyz, .xyz.gz,
            .pdb, .sdf, .traj, .db, .xtc, .trr, .dcd, .nc, .h5, or .npz with the names
            of rMD17 or SchNet; or a folder of images, with a subfolder for each class.
        problem: Data, symmetry and network; the seed, the split, the report's size.
        out: The run folder, new or empty; by default one under runs.
        dry_run: Check everything and print what would be fitted, but write nothing.
        strict: End if something is off in the data.
        processes: Which other processes share the work.
        options: Settings of training and sampling; by default those of the network.
    """

    data: Annotated[pathlib.Path, tyro.conf.Positional]
    problem: Annotated[Problem, tyro.conf.arg(name="")]
    out: pathlib.Path | None = None
    dry_run: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    strict: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    processes: Annotated[Distributed, tyro.conf.arg(name="")] = Distributed()
    options: Annotated[FitOptions, tyro.conf.arg(name="")] = FitOptions()  # type: ignore

    def execute(self) -> int:
        """Check everything, make the run folder, and fit."""
        if self.processes.distributed and self.out is None:
            raise UserError("--distributed needs --out, the same for all processes.")
        self.processes.join()
        task = _prepare(self.data, self.problem, self.options)
        _print_summary(task.dataset, self.strict)
        if self.dry_run:
            say(task.description)
            num = task.model.num_epochs * task.model.epoch_batches
            answer(
                f"{num} batches of {task.model.batch_size}, with the network "
                f"{task.problem.network}. Nothing is written.",
                num_points=len(task.dataset.points), num_batches=num,
                num_held_out=task.dataset.num_held_out, network=task.problem.network,
            )  # fmt: skip
            return 0
        path, dataset = self.out or default_folder("fit"), task.dataset
        if jax.process_index():
            return task.run(RunFolder(path))  # which the first process writes
        folder = RunFolder.create(path)
        described = {
            "command": "fit",
            "data": str(self.data.resolve()),
            "sha256": digest(self.data),
            "shape": list(dataset.points.shape[1:]),
            "num_points": len(dataset.points),
            "num_held_out": dataset.num_held_out,
            "problem": runs.settings_to_json(task.problem),
            "settings": runs.settings_to_json(task.settings),
        }
        folder.write_json("config.json", described)
        return task.run(folder)


def _print_summary(dataset: Dataset, strict: bool) -> None:
    """Print what is in the data; the warnings were printed when they were read."""
    summary = dataset.summary
    assert summary is not None
    say("\n".join(line for line in summary.lines if line not in summary.warnings))
    if strict and summary.warnings:
        raise UserError(
            f"--strict: {len(summary.warnings)} warning(s) about the data, above. Mend "
            "them, or leave --strict out."
        )


def default_folder(name: str) -> pathlib.Path:
    """Return a new folder under runs, named after the time."""
    now = datetime.datetime.now().strftime("%Y%m%d-%H%M%S-%f")[:-3]
    return pathlib.Path("runs") / f"{name}-{now}"


def read_settings(folder: RunFolder) -> tuple[Problem, AbstractSettings]:
    """Return the problem and the settings of an earlier fit."""
    described = folder.read_json("config.json")
    try:
        problem = runs.settings_from_json(Problem, described.get("problem"))
        kind: Any = type(SETTINGS.get(str(problem.network)))
        return problem, runs.settings_from_json(kind, described.get("settings"))
    except (TypeError, ValueError) as error:
        raise UserError(f"{folder.path} cannot be resumed: {error}.") from None


def resume_fit(folder: RunFolder, distributed: Distributed) -> int:
    """Continue an interrupted fit, to the same numbers."""
    problem, settings = read_settings(folder)
    described = folder.read_json("config.json")
    path = pathlib.Path(str(described.get("data")))
    if not path.exists() or digest(path) != described.get("sha256"):
        reason = "is not what this run was started with" if path.exists() else "is gone"
        raise UserError(f"{path} {reason}: restore it, or start a new run.")
    if folder.has("report.html") and folder.has(RunFolder.MODEL):
        print_answer(folder, path, "Finished before. ")
        return 0
    distributed.join()
    return _prepare(path, problem, settings).run(folder)


@dataclasses.dataclass(frozen=True)
class _Task:
    """A fit that is ready to run: the data are read, and everything is checked."""

    data: pathlib.Path
    problem: Problem
    settings: AbstractSettings
    dataset: Dataset
    model: Model | LinearModel | ComparedModel

    @property
    def description(self) -> str:
        """The energy, the symmetry, the data, and the use of energies and forces."""
        data = self.dataset
        kind = "A joint energy" if data.num_classes else "An energy"
        unit = "points" if data.species is None else "molecules"
        text = (
            f"{kind} with the symmetry {self.problem.group}, learned from "
            f"{data.num_train} of {len(data.points)} {unit} of shape "
            f"{tuple(data.points.shape[1:])}; the others are held out."
        )
        text += f" Formula: {formula(data.species)}." if data.species else ""
        text += f" Columns: {', '.join(data.columns)}." if data.columns else ""
        text += f" Classes: {', '.join(data.classes)}." if data.classes else ""
        names = ("energies", "forces")
        names = " and ".join(k for k in names if getattr(data, k) is not None)
        if names and data.kelvin is None:  # a graph network learns from forces alone
            more = ", for energies with --network features" * ("energies" in names)
            return f"{text} To learn from the {names} in the file, give --kelvin{more}."
        if names:
            text += f" The file has {names}, at {data.kelvin:g} K"
            text += "." if data.labels is not None else "; energies are not learned."
        return text

    def run(self, folder: RunFolder) -> int:
        """Fit, draw samples, and write results and report."""
        say(f"{self.description} Fitting ...")
        if jax.process_index():
            self._fit(folder)
            return 0
        runs.write_environment(folder)
        return run_locked(folder, lambda: self._fit_and_judge(folder))

    def _fit(self, folder: RunFolder) -> Fitted:
        # The weights and the held-out points came from `jr.key(seed)` itself.
        _, fit_key, _ = jr.split(jr.key(self.problem.seed), 3)
        train = self.dataset.train()
        return self.model.fit(
            fit_key, train.points, train.labels, checkpoint=folder.path / _CHECKPOINT,
            mesh=device_mesh() if jax.process_count() > 1 else None,
            progress=jax.process_index() == 0,
        )  # fmt: skip

    def _fit_and_judge(self, folder: RunFolder) -> int:
        problem, model = self.problem, folder.path / RunFolder.MODEL
        *_, judge_key = jr.split(jr.key(problem.seed), 3)
        try:
            fitted = self._fit(folder)
            fitted.save(model)
            found = [text for k, text in fitted.about.items() if k == "comparison"]
            say("\n".join([*found, f"Drawing {problem.num_samples} samples ..."]))
            models.write_fit_report(
                judge_key, folder, fitted, self.dataset.preview(),
                num_samples=problem.num_samples, ais_steps=problem.ais_steps,
                title=f"equistein fit: {self.data.name}", seed=problem.seed,
                lead=" ".join([self.description, *found]), progress=True,
            )  # fmt: skip
            if self.dataset.species is not None:
                self._write_molecules(folder, fitted.about)
        except DivergenceError as error:
            history, events = error.fitted.history, error.fitted.events
            no_samples = np.zeros((0, 1))
            diverged = runs.seed_outcome({}, no_samples, history=history, events=events)
            runs.write_history(folder, {"model": diverged})
            error.add_note(f"Every epoch is in {folder.path / 'history.jsonl'}.")
            raise
        except NonFiniteError as error:
            error.add_note(f"The fitted model is kept: {model}.")
            raise
        print_answer(folder, self.data)
        return 0

    def _write_molecules(self, folder: RunFolder, about: dict[str, Any]) -> None:
        """Write the samples of the report to samples.xyz, and SMILES to samples.smi."""
        data, samples = self.dataset, folder.path / "samples.npz"
        points = np.load(samples)["model"]
        write_samples(samples.with_suffix(".xyz"), points, None, data.species, about)
        if data.molecule and has_rdkit():
            found = [perceive(data.molecule, each, data.charge) for each in points]
            rows = [f"{x.smiles} {at}\n" for at, x in enumerate(found) if x.smiles]
            folder.write("samples.smi", "".join(rows))


def _prepare(data: pathlib.Path, problem: Problem, options: Any) -> _Task:
    """Check everything; `options` are those that were given, or complete settings."""
    chosen = {name: v for name, v in vars(options).items() if v is not None}
    # Options of the trained network ask for it, where the default is linear.
    trained = "graph" if is_molecules(data) else "features"
    is_trained = bool(chosen.keys() - vars(SETTINGS["linear"]).keys())
    is_trained &= problem.network is None and {*chosen} <= {*vars(SETTINGS[trained])}
    if is_trained and trained == "graph" and problem.wants_density:
        problem = dataclasses.replace(problem, network="graph")
    dataset = models.read_dataset(data, problem)
    network = problem.network or models.default_network(
        dataset.group, dataset.points.shape[1:], dataset.labels, problem.wants_density
    )
    network = trained if is_trained and network == "linear" else network
    problem, settings = dataclasses.replace(problem, network=network), SETTINGS[network]
    if other := [
        f"--{k.replace('_', '-')}" for k in chosen if not hasattr(settings, k)
    ]:
        raise UserError(
            f"{', '.join(other)}: not a setting of the network {network} of this fit."
        )
    if problem.wants_density and hasattr(settings, "ending"):
        chosen = {"ending": "flow"} | chosen
    settings: Any = dataclasses.replace(settings, **chosen)
    # Small data have smaller batches, where there are some.
    if "batch_size" not in chosen and hasattr(settings, "batch_size"):
        num = min(settings.batch_size, dataset.num_train)
        settings = dataclasses.replace(settings, batch_size=num)
    model = models.for_dataset(jr.key(problem.seed), dataset, settings)
    train = dataset.preview().train()
    model.check(jr.key(problem.seed), train.points, train.labels)
    check_sample_memory(problem.num_samples, dataset.points.shape[1:])
    size = _BYTES_PER_EPOCH * model.num_epochs
    check_memory("The history of all epochs", size, "take a smaller `num_epochs`")
    return _Task(data.resolve(), problem, settings, dataset, model)


def print_answer(folder: RunFolder, data: pathlib.Path, prefix: str = "") -> None:
    """Print where the report of a finished fit is, and how to draw more."""
    report, model = folder.path / "report.html", folder.path / RunFolder.MODEL
    ending = "" if data.is_dir() else data.suffix.lower()  # of images, a folder
    new = f"new{ {'.gz': '.xyz.gz', '.sdf': '.xyz'}.get(ending, ending) }"
    answer(
        f"{prefix}Report: {report}",
        folder=folder.path, report=report, model=model,
        metrics=folder.read_json("metrics.json"),
    )  # fmt: skip
    run = shlex.quote(str(folder.path))
    say(f"Draw more:  equistein sample {run} --num-samples 512 --out {new}")
