"""`equistein fit`: the user's own data."""

import dataclasses
import hashlib
import json
import pathlib
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import jax.numpy as jnp
import jax.random as jr
import numpy as np
import tyro

from equistein.cli._dataset import (
    Dataset,
    is_graph,
    load,
    make_group,
    Problem,
)
from equistein.cli._fit_results import finish
from equistein.cli._given import given
from equistein.cli._run import default_folder, INTERRUPTED
from equistein.energies import (
    AbstractEnergy,
    energy_for,
    formulas_energy_for,
    graph_energy_for,
)
from equistein.groups import ImageRotations, PointCloud, Trivial
from equistein.molecules import atomic_numbers_of, formula
from equistein.runs import (
    config_from_json,
    config_to_json,
    Outcome,
    RunFolder,
    UserError,
    Words,
    write_environment,
    write_history,
    write_report,
)
from equistein.samplers import NonFiniteError
from equistein.training import (
    check_start,
    CheckpointError,
    DENOISING,
    DivergenceError,
    fit,
    FitConfig,
    Fitted,
    load_fitted,
    save_fitted,
    start_for,
)

_MODEL = "checkpoint/model.eqx"
_TRAINING = "checkpoint/training.eqx"
_LIKELY = (
    "Samples drawn from fresh starts, compared with one half of the data by their "
    "invariant features. The log-likelihood of held-out points, in nats, rests on log "
    "Z by annealed importance sampling, whose error bound is beside it. AUROC: the "
    "chance that a held-out point scores higher than a point drawn uniformly from the "
    "data's box."
)
_DENOISED = (
    "Samples annealed from noise, compared with one half of the data by a smooth "
    "histogram of their distances. The denoising loss, over all levels of noise, is "
    "better the lower it is. Stable atoms have bonds, by a table of lengths of H, "
    "C, N, O and F, that sum to their valence; valid molecules are those that RDKit "
    "accepts; novel ones are not in the data."
)


def fit_arguments(arguments: Sequence[str]) -> Any:
    """Return the class of the arguments of `equistein fit`, with its defaults.

    Args:
        arguments: The command line; what is not said is what suits the energy.
    """
    molecules = any(argument.lower().endswith(".xyz") for argument in arguments)
    network = given(arguments, "network") or ("graph" if molecules else "features")
    defaults = DENOISING if network == "graph" else FitConfig()

    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Fit:
        """Learn an invariant energy from data, and draw new points.

        Attributes:
            data: An .npy file; an .npz file with an array `x`, and classes `y` if there
                are any; or an .xyz file.
            problem: What is fitted to what.
            out: The run folder, new or empty; by default one under runs.
            config: How.
        """

        data: Annotated[pathlib.Path, tyro.conf.Positional]
        problem: Annotated[Problem, tyro.conf.arg(name="")]
        out: pathlib.Path | None = None
        config: Annotated[FitConfig, tyro.conf.arg(name="")] = defaults

        def execute(self) -> int:
            return start(self.data, self.problem, self.config, self.out)

    return Fit


def start(
    data: pathlib.Path, problem: Problem, config: FitConfig, out: pathlib.Path | None
) -> int:
    """Check everything, make the run folder, and fit."""
    try:
        dataset = load(data, problem, config.batch_size)
        energy = make_energy(problem, config, dataset)
        seen = dataset.train()
        known = None if seen.labels is None else jnp.asarray(seen.labels)
        begin = start_for(
            config, seen.points, dataset.group, known, dataset.num_classes
        )
        check_start(energy, begin, config)
    except ValueError as error:
        raise UserError(str(error)) from None
    folder = RunFolder.create(out or default_folder("fit"))
    folder.write_config(
        {
            "command": "fit",
            "data": str(data.resolve()),
            "sha256": hashlib.sha256(data.read_bytes()).hexdigest(),
            "shape": list(dataset.points.shape[1:]),
            "species": list(dataset.species) if dataset.species else None,
            "formulas": [list(f) for f in dataset.formulas or ()] or None,
            "num_classes": dataset.num_classes,
            "num_points": len(dataset.points),
            "num_held_out": dataset.num_held_out,
            "problem": config_to_json(problem),
            "config": config_to_json(config),
        },
    )
    return execute(folder, problem, config, dataset)


def resume_fit(folder: RunFolder) -> int:
    """Go on with an interrupted fit, to the same numbers."""
    described = folder.read_config()
    problem, config = settings(described)
    path = pathlib.Path(str(described.get("data")))
    if not path.is_file():
        raise UserError(f"There is no file {path}, which this run was started with.")
    if hashlib.sha256(path.read_bytes()).hexdigest() != described.get("sha256"):
        raise UserError(
            f"{path} is no longer the file this run was started with; restore it, or "
            "start a new run."
        )
    try:
        dataset = load(path, problem, config.batch_size)
    except (TypeError, ValueError) as error:
        raise UserError(str(error)) from None
    return execute(folder, problem, config, dataset)


def execute(
    folder: RunFolder, problem: Problem, config: FitConfig, dataset: Dataset
) -> int:
    """Fit, draw samples, and write results and report."""
    write_environment(folder)
    _, fit_key, result_key = jr.split(jr.key(problem.seed), 3)
    energy = make_energy(problem, config, dataset)
    train = dataset.train()
    classes = f", {dataset.num_classes} classes" if dataset.num_classes else ""
    if dataset.species:
        classes = f", molecules of {formula(dataset.species)}"
    if dataset.formulas:
        names = ", ".join(map(formula, dataset.formulas))
        classes = f", molecules of {len(dataset.formulas)} formulas ({names})"
    print(
        f"Fitting {len(train.points)} points of shape "
        f"{tuple(train.points.shape[1:])}{classes}, symmetry {problem.group}; "
        f"{len(dataset.points) - len(train.points)} are held out ...",
        flush=True,
    )
    try:
        fitted = fit(
            fit_key, energy, train.points, config, labels=train.labels,
            checkpoint=folder.path / _TRAINING, progress=True,
        )  # fmt: skip
        save_fitted(folder.path / _MODEL, fitted, _header(folder))
        if dataset.formulas:
            print(
                f"The most frequent formula, {formula(dataset.formulas[0])}, is drawn."
            )
            fitted, dataset = fitted.formula(0), dataset.of_formula(0)
        finish(result_key, folder, problem, fitted, dataset)
        write_report(folder, words_of(folder.read_config()))
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
            "Fit anew with a smaller `langevin` and `stein_step`.",
            file=sys.stderr,
        )
        return 1
    print(f"Report: {folder.path / 'report.html'}")
    data = pathlib.Path(str(folder.read_config()["data"]))
    suffix = data.suffix.lower()
    print(
        f"Draw more:  equistein sample {folder.path} --num-samples 512 "
        f"--out new{suffix}"
    )
    return 0


def load_run(folder: RunFolder) -> Fitted:
    """Return the fit in a run folder.

    Raises:
        UserError: If the folder holds no finished fit.
    """
    described = folder.read_config()
    if described.get("command") != "fit":
        raise UserError(
            f"{folder.path} holds no learned energy: give the folder of an "
            "`equistein fit`."
        )
    if not (folder.path / _MODEL).is_file():
        raise UserError(
            f"The fit in {folder.path} is not finished; `equistein resume "
            f"{folder.path}`. If it diverged, start a new one."
        )
    problem, config = settings(described)
    try:
        shape = tuple(int(size) for size in described.get("shape", ()))
        # Any points of the right shape: the stored arrays replace what they give.
        like = jr.normal(jr.key(0), (8, *shape))
        species, num_classes = described.get("species"), described.get("num_classes")
        formulas = tuple(tuple(row) for row in described.get("formulas") or ())
        group = Trivial() if formulas else make_group(problem, shape, species)
        described_data = Dataset(
            like, np.zeros(len(like), int), group, num_classes,
            tuple(species) if species else None, formulas or None,
        )  # fmt: skip
        # The stored levels of noise replace those of these points.
        unset = dataclasses.replace(config, noise=None)
        energy = make_energy(problem, unset, described_data)
        return load_fitted(folder.path / _MODEL, energy, like, config, _header(folder))
    except (TypeError, ValueError) as error:
        raise UserError(str(error)) from None


def settings(described: dict) -> tuple[Problem, FitConfig]:
    """Return the problem and the settings in a config.json.

    Raises:
        UserError: If they are not those of this version.
    """
    try:
        problem = config_from_json(
            Problem(group="trivial"), described.get("problem", {})
        )
        return problem, config_from_json(FitConfig(), described.get("config", {}))
    except (TypeError, ValueError) as error:
        raise UserError(f"The run's config.json cannot be read: {error}.") from None


def make_energy(
    problem: Problem, config: FitConfig, dataset: Dataset
) -> AbstractEnergy:
    """Return an untrained energy for the problem."""
    key, train = jr.key(problem.seed), dataset.train()
    points = train.points
    if train.formulas:
        charges = [atomic_numbers_of(row) for row in train.formulas]
        return formulas_energy_for(
            key, train.formulas, points, jnp.asarray(train.labels), charges=charges,
            width=problem.width or 64, depth=problem.depth or 4, noise=config.noise,
        )  # fmt: skip
    if is_graph(problem, dataset.species):
        assert isinstance(dataset.group, PointCloud)
        charges = atomic_numbers_of(dataset.species) if dataset.species else None
        return graph_energy_for(
            key, dataset.group, points, charges=charges, width=problem.width or 64,
            depth=problem.depth or 4, noise=config.noise,
        )  # fmt: skip
    if isinstance(dataset.group, ImageRotations) and (problem.width or problem.depth):
        raise ValueError(
            "--width and --depth are not for images, whose network has 8 layers of 4 "
            "to 16 fields: leave them out."
        )
    return energy_for(
        key, dataset.group, points, num_classes=dataset.num_classes,
        widths=(problem.width or 128,) * (problem.depth or 3),
    )  # fmt: skip


def _unfinished(fitted: Fitted) -> Outcome:
    """Return the epochs of a fit that came to no results."""
    done = np.isfinite(fitted.history["loss"])
    history = {name: values[done][None] for name, values in fitted.history.items()}
    history = {"step": history.pop("epoch")} | history
    return Outcome(
        metrics={}, samples=np.zeros((0, 1)), history=history, events=fitted.events
    )


def _header(folder: RunFolder) -> dict:
    return {"config": json.loads((folder.path / "config.json").read_text())}


def words_of(described: dict) -> Words:
    """Return what the report of a fit says."""
    problem, shape = described.get("problem", {}), tuple(described.get("shape", ()))
    kind = "A joint energy of points and classes"
    kind = kind if described.get("num_classes") else "An energy"
    count, num_points = "", described.get("num_points")
    if num_points:
        count = f"{num_points - described['num_held_out']} of {num_points} "
    by_denoising = bool(described.get("formulas")) or is_graph(
        Problem(group="trivial", network=problem.get("network")),
        described.get("species"),
    )
    return Words(
        title=f"equistein fit: {pathlib.Path(str(described.get('data'))).name}",
        lead=f"{kind} with the symmetry {problem.get('group')}, learned from {count}"
        f"points of shape {shape}; the others are held out.",
        notes={"model": _DENOISED if by_denoising else _LIKELY},
        floor="data",
        floor_note="The floor compares as many points of the other half of the data "
        "with the same half.",
        captions={
            "features": "All invariant features of the data and of the samples.",
            "molecules": "New molecules, with the bonds that greedy steps infer, or "
            "RDKit where there are other elements than H, C, N, O and F.",
            "turned": "New molecules, to turn with the mouse.",
            "energy_gap": "The gap that contrastive divergence closes.",
            "denoising_loss": "The loss of denoising.",
            "configurations": "Configurations from the data, and new ones.",
            "samples": "The data, and new samples; those of each class by themselves.",
        },
    )
