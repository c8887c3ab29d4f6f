"""The user's data, read from a file, checked and split."""

import collections
import dataclasses
import pathlib
from typing import Any

import jax.numpy as jnp
import jax.random as jr
import numpy as np

from equistein._check_arguments import check_arguments
from equistein._limits import max_bytes
from equistein.data import (
    as_particles,
    DataError,
    DataSummary,
    describe,
    image_classes,
    is_table,
    map_points,
    read_image_folder,
    read_labels,
    read_points,
    read_table,
)
from equistein.groups import AbstractGroup, parse_group, PointCloud
from equistein.models._contrastive import num_classes_of
from equistein.models._settings import Problem
from equistein.molecules import (
    BOLTZMANN,
    formula,
    is_molecules,
    read_molecules,
    READ_OPTIONS,
)
from equistein.training import check_on_disk, PREVIEW_SIZE, spread_rows

_MAX_ATOMS = 200
_NAMED = 5  # formulas, in an error
_DESCRIBED = (
    "group", "species", "energies", "forces", "kelvin", "charge", "columns", "notes"
)  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Dataset:
    """Points, with their classes and elements if the file has them.

    Attributes:
        points: The points, the held-out ones last; perhaps an array on disk.
        labels: The class of each point, -1 where unknown; or its energy in kT minus the
            mean of the known ones in training, NaN where unknown.
        group: The symmetry.
        num_classes: The number of classes.
        species: The element of each atom; None unless the data are molecules.
        num_held_out: The number of points that training does not see.
        columns: What the file calls the coordinates.
        classes: What it calls the classes.
        class_column: The column of the classes.
        energies: The energy of each molecule in eV, NaN where unknown.
        forces: The forces on the atoms in eV / Angstrom, NaN where unknown.
        kelvin: The temperature at which they are learned and judged.
        charge: The charge of each molecule, in units of e.
        notes: What was found in the file and what is left out.
        summary: What is in the file, and off in it.
    """

    points: Any
    labels: np.ndarray | None
    group: AbstractGroup
    num_classes: int | None = None
    species: tuple[str, ...] | None = None
    num_held_out: int = 0
    columns: tuple[str, ...] | None = None
    classes: tuple[str, ...] | None = None
    class_column: str | None = None
    energies: np.ndarray | None = None
    forces: np.ndarray | None = None
    kelvin: float | None = None
    charge: int = 0
    notes: tuple[str, ...] = ()
    summary: DataSummary | None = None

    @property
    def num_train(self) -> int:
        """The number of points that training sees."""
        return len(self.points) - self.num_held_out

    def train(self) -> "Dataset":
        """Return what training sees."""
        return self.select(slice(0, self.num_train), 0)

    def held_out(self) -> "Dataset":
        """Return what training does not see."""
        return self.select(slice(self.num_train, None), 0)

    def select(self, rows: Any, num_held_out: int) -> "Dataset":
        """Return the data of these rows, of which the last ones are held out."""
        known = {n: getattr(self, n) for n in ("labels", "energies", "forces")}
        return dataclasses.replace(
            self, points=self.points[rows], num_held_out=num_held_out,
            **{name: v if v is None else v[rows] for name, v in known.items()},
        )  # fmt: skip

    def preview(self) -> "Dataset":
        """Return the data or, of points on disk, some of each part, evenly spaced."""
        if not isinstance(self.points, np.memmap):
            return self
        held_out = spread_rows(max(1, self.num_held_out), PREVIEW_SIZE) + self.num_train
        held_out = held_out[: self.num_held_out]
        rows = spread_rows(self.num_train, PREVIEW_SIZE)
        if self.labels is not None:  # some of each class
            _, first = np.unique(self.labels[: self.num_train], return_index=True)
            rows = np.union1d(rows, first)
        part = self.select(np.concatenate([rows, held_out]), len(held_out))
        return dataclasses.replace(part, points=jnp.asarray(part.points, float))


@check_arguments
def read_dataset(path: pathlib.Path, problem: Problem) -> Dataset:
    """Return the checked data of a file or a folder, shuffled if in memory."""
    arrays = path.suffix in (".npy", ".npz")
    has_molecules = is_molecules(path)
    for names, allowed, kinds in (
        (("stream",), arrays, ".npy and .npz files"),
        ("columns class_column sep decimal".split(), is_table(path), "tables, as .csv"),
        (("kelvin",), has_molecules, "molecules with energies or forces"),
        (set(READ_OPTIONS) - {"species"}, has_molecules, "molecules"),
        (("dim", "species"), problem.group == "point-cloud", "--group point-cloud"),
    ):
        given = [f"--{n.replace('_', '-')}" for n in names if getattr(problem, n)]
        _check(
            allowed or not given, f"{' and '.join(given)} is for {kinds}: leave it out."
        )
    large = arrays and path.is_file() and path.stat().st_size > max_bytes()
    if has_molecules:
        dataset = _read_molecules(path, problem)
    else:
        dataset = _read_points(path, problem, problem.stream or large)
    num = len(dataset.points)
    dataset = dataclasses.replace(
        dataset, num_held_out=round(problem.held_out * num), kelvin=problem.kelvin
    )
    _check(
        dataset.num_train >= 2,
        f"{path} leaves {dataset.num_train} of {num} points for training: at least two "
        "are needed.",
    )
    known = {n: getattr(dataset, n) for n in _DESCRIBED}
    dataset = dataclasses.replace(dataset, summary=describe(dataset.points, **known))
    if not isinstance(dataset.points, np.memmap):
        order = np.asarray(jr.permutation(jr.key(problem.seed), num))
        dataset = dataset.select(order, dataset.num_held_out)
        dataset = dataclasses.replace(dataset, points=jnp.asarray(dataset.points))
    if dataset.num_classes is not None:
        seen = set(np.unique(np.asarray(dataset.train().labels)).tolist())
        named = enumerate(dataset.classes or range(dataset.num_classes))
        missing = ", ".join(str(name) for i, name in named if i not in seen)
        _check(
            not missing,
            f"Training sees no point of class {missing} in {path}: give more points, "
            "or a smaller --held-out; numbers go from 0 on, without gaps.",
        )
    return dataset if problem.kelvin is None else _with_energies(path, problem, dataset)


def _check(good: bool | np.bool_, otherwise: str) -> None:
    if not good:
        raise DataError(otherwise)


def _read_points(path: pathlib.Path, problem: Problem, streams: bool) -> Dataset:
    """Return the points of a file, not of molecules, in its order."""
    labels, columns, classes, notes = None, None, None, ()
    if path.is_dir():
        points, labels = read_image_folder(path)
        classes = image_classes(path)
    elif is_table(path):
        wanted = problem.columns and [w.strip() for w in problem.columns.split(",")]
        options = problem.class_column, problem.sep, problem.decimal
        table = read_table(path, wanted, *options)
        points, labels, notes = table.points, table.labels, table.notes
        columns, classes = table.columns, table.classes
    else:
        _check(
            path.suffix in (".npy", ".npz"),
            f"{path} must be an .npy file, an .npz file with `x` and perhaps `y`, a "
            "table (.csv, .tsv, .parquet), molecules (.xyz, .extxyz, .xyz.gz, .traj, "
            ".db, .pdb, .sdf) or a folder of images.",
        )
        points = map_points(path) if streams else read_points(path)
        if isinstance(points, np.memmap):
            check_on_disk(points, str(path))
        labels = read_labels(path, len(points)) if problem.labels else None
    points, group = _with_group(path, problem, points)
    group.check_shape(points.shape[1:])
    if labels is None or not problem.labels:
        return Dataset(points, None, group, columns=columns, notes=notes)
    more = {"classes": classes, "class_column": problem.class_column}
    num = num_classes_of(labels)
    return Dataset(points, labels, group, num, columns=columns, notes=notes, **more)


def _with_group(
    path: pathlib.Path, problem: Problem, points: np.ndarray
) -> tuple[np.ndarray, AbstractGroup]:
    """Return the points, as clouds of particles if they are, and the symmetry."""
    if problem.group != "point-cloud":
        return points, parse_group(problem.group)
    dim = problem.dim or (points.shape[2] if points.ndim == 3 else 0)
    _check(
        dim > 0,
        f"{path} holds rows of {points.shape[1]} numbers: give --dim, the dimension of "
        "space.",
    )
    points = as_particles(points, dim)
    _check(
        points.shape[1] > 1,
        f"each point of {path} is a single particle: for one vector take so:3 or o:3.",
    )
    species = problem.species.split() if problem.species else [0] * points.shape[1]
    return points, PointCloud(species, dim)


def _read_molecules(path: pathlib.Path, problem: Problem) -> Dataset:
    """Return centered molecules; energies and forces that are unknown are NaN."""
    _check(
        (problem.group, problem.dim or 3) == ("point-cloud", 3),
        f"{path} holds molecules: give --group point-cloud, and no --dim.",
    )
    options = {name: getattr(problem, name) for name in READ_OPTIONS}
    frames = read_molecules(path, **options)
    sizes = np.array([len(frame.symbols) for frame in frames])
    bad = (sizes < 2) | (sizes > _MAX_ATOMS)
    _check(
        not bad.any(),
        f"{path}: molecules must have 2 to {_MAX_ATOMS} atoms, but that at "
        f"index {bad.argmax()} has {sizes[bad.argmax()]}.",
    )
    kinds = [formula(f.symbols) + f"{f.charge:+}" * bool(f.charge) for f in frames]
    formulas = [
        f"{name} ({num}, the first at index {kinds.index(name)})"
        for name, num in collections.Counter(kinds).most_common(_NAMED)
    ]
    _check(
        len(formulas) == 1,
        f"{path} holds {', '.join(formulas)}: choose one, as by --formula "
        f"{formula(frames[0].symbols)}, or give the --charge of all.",
    )
    # Atoms of an element are alike, so each molecule's are put into the first's order.
    places = np.argsort(np.argsort(frames[0].symbols, kind="stable"))
    unknown, points, forces = np.full((sizes[0], 3), np.nan), [], []
    for frame in frames:
        order = np.argsort(frame.symbols, kind="stable")[places]
        points.append((frame.positions - frame.positions.mean(axis=0))[order])
        forces.append(unknown if frame.forces is None else frame.forces[order])
    energies = np.array([np.nan if f.energy is None else f.energy for f in frames])
    has_forces = any(frame.forces is not None for frame in frames)
    species = tuple(frames[0].symbols)
    return Dataset(
        np.array(points, np.float32), None, PointCloud(species, 3), species=species,
        energies=energies if np.isfinite(energies).any() else None,
        forces=np.array(forces, np.float32) if has_forces else None,
        charge=frames[0].charge, notes=frames.notes,
    )  # fmt: skip


def _with_energies(path: pathlib.Path, problem: Problem, dataset: Dataset) -> Dataset:
    """Return the data, with energies / kT minus their mean as labels if learned."""
    # A graph network learns the density of blurred molecules: from forces alone.
    by_features, num = problem.network == "features", dataset.num_train
    solved = (problem.network or "linear") == "linear" and problem.wants_density
    known = np.zeros(0) if dataset.energies is None else dataset.energies[:num]
    known = known[np.isfinite(known)]
    uses_energies = by_features and len(np.unique(known)) > 1
    forces = dataset.forces
    _check(
        (uses_energies or solved)
        if forces is None
        else np.nansum(forces[:num] ** 2) > 0,
        "--kelvin needs forces that are not all zero, or with --network features "
        f"energies that differ, but the training part of {path} has none for this "
        f"network: leave --kelvin out. {' '.join(dataset.notes)}",
    )
    if solved or not (uses_energies and problem.labels):
        return dataset
    assert problem.kelvin is not None
    labels = (dataset.energies - known.mean()) / (BOLTZMANN * problem.kelvin)
    return dataclasses.replace(dataset, labels=labels.astype(np.float32))
