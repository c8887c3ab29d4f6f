"""`equistein fit` and `equistein sample`: the user's own data."""

import dataclasses
import hashlib
import json
import pathlib
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import tyro

from equistein.cli._folder import as_json, RunFolder, UserError
from equistein.cli._report import write_report
from equistein.cli._run import config_from_json, default_folder, INTERRUPTED
from equistein.data import as_particles, DataError, read_points
from equistein.energies import AbstractEnergy, energy_for, FeatureEnergy
from equistein.experiments import FLOOR, Outcome
from equistein.features import AbstractFeatures, Coordinates
from equistein.groups import AbstractGroup, parse_group
from equistein.metrics import energy_distance, wasserstein_1d
from equistein.plotting import configurations, curves, laws, planar_samples
from equistein.training import (
    CheckpointError,
    fit,
    FitConfig,
    Fitted,
    load_fitted,
    save_fitted,
)

_MODEL = "checkpoint/model.eqx"
_TRAINING = "checkpoint/training.eqx"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Problem:
    """What is fitted to what.

    Attributes:
        group: The symmetry: trivial, cyclic:4, dihedral:5, so:3, o:3 or point-cloud.
        dim: For a point cloud, the dimension of space.
        species: For a point cloud, one label a particle, as in "C C O"; by default all
            particles are alike.
        seed: The source of all randomness.
        width: The number of units of a hidden layer.
        depth: The number of hidden layers.
        num_samples: Samples drawn after the fit, for the report.
    """

    group: str
    dim: int | None = None
    species: str | None = None
    seed: int = 0
    width: int = 128
    depth: int = 3
    num_samples: int = 512

    def __post_init__(self):
        for name in ("width", "depth", "num_samples"):
            if getattr(self, name) < 1:
                raise ValueError(
                    f"`{name}` must be at least 1, but got {getattr(self, name)}."
                )
        if self.seed < 0:
            raise ValueError(f"`seed` must be at least 0, but got {self.seed}.")


def fit_data(arguments: Sequence[str]) -> int:
    """Parse, check the data, make the run folder, and fit."""

    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Arguments:
        data: Annotated[
            pathlib.Path,
            tyro.conf.Positional,
            tyro.conf.arg(help=".npy file, or .npz file with an array `x`"),
        ]
        problem: Annotated[Problem, tyro.conf.arg(name="")]
        out: Annotated[
            pathlib.Path | None, tyro.conf.arg(help="the run folder, new or empty")
        ] = None
        config: Annotated[FitConfig, tyro.conf.arg(name="")] = FitConfig()

    try:
        parsed = tyro.cli(
            Arguments,
            args=list(arguments),
            prog="equistein fit",
            description="Learn an invariant energy from data, and draw new points.",
        )
        data, group = load(parsed.data, parsed.problem)
        make_energy(parsed.problem, group, data)
    except ValueError as error:
        raise UserError(str(error)) from None
    folder = RunFolder.create(parsed.out or default_folder("fit"))
    folder.write_json(
        "config.json",
        {
            "command": "fit",
            "data": str(parsed.data.resolve()),
            "sha256": hashlib.sha256(parsed.data.read_bytes()).hexdigest(),
            "shape": list(data.shape[1:]),
            "problem": as_json(parsed.problem),
            "config": as_json(parsed.config),
            "words": _words(parsed.data.name, data, parsed.problem),
        },
    )
    return execute(folder, parsed.problem, parsed.config, data, group)


def resume_fit(folder: RunFolder) -> int:
    """Go on with an interrupted fit, to the same numbers."""
    described = folder.read_json("config.json")
    problem, config = settings(described)
    path = pathlib.Path(str(described.get("data")))
    try:
        data, group = load(path, problem)
    except ValueError as error:
        raise UserError(str(error)) from None
    if hashlib.sha256(path.read_bytes()).hexdigest() != described.get("sha256"):
        raise UserError(
            f"{path} is no longer the file this run was started with; restore it, or "
            "start a new run."
        )
    return execute(folder, problem, config, data, group)


def execute(
    folder: RunFolder, problem: Problem, config: FitConfig, data: Any,
    group: AbstractGroup,
) -> int:  # fmt: skip
    """Fit, draw samples, and write results and report."""
    folder.write_environment()
    _, fit_key, sample_key = jr.split(jr.key(problem.seed), 3)
    energy = make_energy(problem, group, data)
    print(
        f"Fitting {len(data)} points of shape {tuple(data.shape[1:])}, symmetry "
        f"{problem.group} ...",
        flush=True,
    )
    try:
        fitted = fit(
            fit_key, energy, data, config,
            checkpoint=folder.path / _TRAINING, progress=True,
        )  # fmt: skip
        save_fitted(folder.path / _MODEL, fitted, _header(folder))
        print(f"Drawing {problem.num_samples} samples ...", flush=True)
        samples = fitted.sample(sample_key, problem.num_samples, progress=True)
    except KeyboardInterrupt:
        print(
            f"\nStopped. What was learned so far is kept in {folder.path}; go on with\n"
            f"  equistein resume {folder.path}",
            file=sys.stderr,
        )
        return INTERRUPTED
    except CheckpointError as error:
        raise UserError(str(error)) from None
    except FloatingPointError as error:
        print(f"equistein: {error}", file=sys.stderr)
        return 1
    finish(folder, problem, fitted, data, samples)
    print(f"Report: {folder.path / 'report.html'}")
    print(f"Draw more:  equistein sample {folder.path} --num-samples 512 --out new.npy")
    return 0


def finish(folder: RunFolder, problem: Problem, fitted: Fitted, data, samples) -> None:
    """Write what a fit gave."""
    features = features_of(fitted.energy)
    data = jax.vmap(fitted.start.group.project)(data)
    described = jax.jit(jax.vmap(features))
    split = jr.permutation(jr.key(problem.seed), len(data))
    half = len(data) // 2
    history = {k: v[None] for k, v in fitted.history.items() if k != "epoch"}
    history["step"] = fitted.history["epoch"][None]

    def outcome(points, against, history=None) -> Outcome:
        mine, other = described(points), described(against)
        gaps = [wasserstein_1d(a, b) for a, b in zip(mine.T, other.T, strict=True)]
        energies = jax.vmap(fitted.energy)(points)
        return Outcome(
            metrics={
                "energy_distance_of_features": np.array(
                    [float(energy_distance(mine, other))]
                ),
                "w1_of_a_feature": np.array([float(np.mean(np.array(gaps)))]),
                "median_model_energy": np.array([float(jnp.median(energies))]),
            },
            samples=np.asarray(points),
            history=history or {},
        )

    # The same numbers of points on both sides, so that the rows can be compared.
    num = min(half, len(samples))
    model = outcome(samples[:num], data[split[half:]], history)
    outcomes = {
        "model": dataclasses.replace(model, samples=np.asarray(samples)),
        FLOOR: outcome(data[split[:num]], data[split[half:]]),
    }
    folder.write_results(outcomes, [problem.seed])
    figures = {
        "features": laws(
            {
                "data": np.ravel(described(data)),
                "samples": np.ravel(described(samples)),
            },
            None,
            "invariant features, all together",
        ),
        "training": curves(
            {
                "data minus particles": (
                    history["step"][0],
                    history["positive_energy"] - history["negative_energy"],
                )
            },
            "energy gap",
            exact=0.0,
            x_label="epoch",
        ),
    }
    figures |= pictures(np.asarray(data), np.asarray(samples))
    folder.write_figures(figures)
    write_report(folder)


def pictures(data: np.ndarray, samples: np.ndarray) -> dict:
    """Draw the points themselves, where they are planar or small clouds."""
    reach = float(np.quantile(np.abs(data), 0.999)) * 1.25
    if data.ndim == 2 and data.shape[1] == 2:
        views = {"data": (data,), "samples": (samples,)}
        return {"samples": planar_samples(views, ("",), None, reach)}
    if data.ndim == 3 and data.shape[2] >= 2:
        pick = np.linspace(0, len(data) - 1, 10).astype(int)
        shown = {"data": data[pick], "samples": samples[:10]}
        return {"configurations": configurations(shown, reach)}
    return {}


def sample_run(arguments: Sequence[str]) -> int:
    """Draw new samples from a fitted energy into a file."""

    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Arguments:
        run: Annotated[
            pathlib.Path,
            tyro.conf.Positional,
            tyro.conf.arg(help="the folder of an `equistein fit`"),
        ]
        out: Annotated[pathlib.Path, tyro.conf.arg(help="a new .npy or .npz file")]
        num_samples: Annotated[int, tyro.conf.arg(help="how many")] = 512
        seed: Annotated[int, tyro.conf.arg(help="the source of randomness")] = 0

    parsed = tyro.cli(
        Arguments,
        args=list(arguments),
        prog="equistein sample",
        description="Draw new samples from a learned energy.",
    )
    if parsed.num_samples < 1 or parsed.seed < 0:
        raise UserError(
            "--num-samples must be at least 1 and --seed at least 0, but got "
            f"{parsed.num_samples} and {parsed.seed}."
        )
    if parsed.out.suffix not in (".npy", ".npz"):
        raise UserError(f"--out must end in .npy or .npz, but got {parsed.out}.")
    if parsed.out.exists():
        raise UserError(f"{parsed.out} is there already; choose another --out.")
    if not parsed.out.absolute().parent.is_dir():
        raise UserError(f"There is no folder {parsed.out.absolute().parent}.")
    fitted = load_run(RunFolder.open(parsed.run))
    part = parsed.out.with_name(f".{parsed.out.stem}.part{parsed.out.suffix}")
    part.touch()  # before the work: can it be written at all?
    points = fitted.sample(jr.key(parsed.seed), parsed.num_samples, progress=True)
    if parsed.out.suffix == ".npz":
        np.savez(part, x=np.asarray(points))
    else:
        np.save(part, np.asarray(points))
    part.replace(parsed.out)
    print(f"{parsed.num_samples} samples of shape {points.shape[1:]}: {parsed.out}")
    return 0


def load_run(folder: RunFolder) -> Fitted:
    """Return the fit in a run folder.

    Raises:
        UserError: If the folder holds no finished fit.
    """
    described = folder.read_json("config.json")
    if described.get("command") != "fit":
        raise UserError(
            f"{folder.path} holds no learned energy: give the folder of an "
            "`equistein fit`."
        )
    if not (folder.path / _MODEL).is_file():
        raise UserError(
            f"The fit in {folder.path} is not finished; `equistein resume "
            f"{folder.path}`."
        )
    problem, config = settings(described)
    try:
        shape = tuple(int(size) for size in described.get("shape", ()))
        # Any points of the right shape: the stored arrays replace what they give.
        like = jr.normal(jr.key(0), (8, *shape))
        energy = make_energy(problem, make_group(problem, shape), like)
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
        raise UserError(f"The run's config.json is damaged: {error}") from None


def load(path: pathlib.Path, problem: Problem) -> tuple[Any, AbstractGroup]:
    """Return the data, in the shape the group acts on, and the group.

    Raises:
        ValueError: If they do not fit.
    """
    points = read_points(path)
    if problem.group == "point-cloud":
        dim = problem.dim
        if dim is None and points.ndim == 3:
            dim = points.shape[2]
        if dim is None:
            raise DataError(
                f"{path} holds rows of {points.shape[1]} numbers: give --dim, the "
                "dimension of space, to tell the particles apart."
            )
        points = as_particles(points, dim)
    elif problem.dim is not None or problem.species is not None:
        raise DataError("--dim and --species are for --group point-cloud.")
    group = make_group(problem, points.shape[1:])
    group.check_shape(points.shape[1:])
    return jnp.asarray(points), group


def make_group(problem: Problem, shape: tuple[int, ...]) -> AbstractGroup:
    """Return the problem's group for points of this shape."""
    if problem.group != "point-cloud":
        return parse_group(problem.group)
    species = problem.species.split() if problem.species else [0] * shape[0]
    return parse_group("point-cloud", species=species, dim=shape[1])


def make_energy(problem: Problem, group: AbstractGroup, data) -> AbstractEnergy:
    """Return an untrained energy for the problem."""
    return energy_for(
        jr.key(problem.seed), group, data, width=problem.width, depth=problem.depth
    )


def features_of(energy: AbstractEnergy) -> AbstractFeatures:
    """Return the features in which samples are compared with data."""
    return energy.features if isinstance(energy, FeatureEnergy) else Coordinates()


def _header(folder: RunFolder) -> dict:
    return {"config": json.loads((folder.path / "config.json").read_text())}


def _words(name: str, data, problem: Problem) -> dict:
    return {
        "title": f"equistein fit: {name}",
        "lead": f"An energy with the symmetry {problem.group}, learned from "
        f"{len(data)} points of shape {tuple(data.shape[1:])} by contrastive "
        "divergence with equivariant SVGD.",
        "notes": {
            "model": "Samples drawn from fresh starts, compared with one half of the "
            "data by their invariant features."
        },
        "floor": "data",
        "floor_note": "The floor compares as many points of the other half of the data "
        "with the same half.",
        "captions": {
            "features": "All invariant features of the data and of the samples.",
            "training": "The gap that contrastive divergence closes.",
            "configurations": "Configurations from the data, and new ones.",
            "samples": "The data, and new samples.",
        },
    }
