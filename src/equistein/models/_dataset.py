"""The user's data, read from a file, checked and split."""

import collections
import dataclasses
import pathlib
from typing import Any

import jax.numpy as jnp
import jax.random as jr
import numpy as np

from equistein._gate import gate
from equistein._limits import check_read_size, max_bytes
from equistein.data import (
    as_particles,
    DataError,
    image_classes,
    is_table,
    map_points,
    read_image_folder,
    read_labels,
    read_points,
    read_table,
)
from equistein.groups import AbstractGroup, parse_group, PointCloud, Trivial
from equistein.models._settings import Problem
from equistein.molecules import BOLTZMANN, is_molecules, MissingASE, read_molecules
from equistein.training import check_classes, check_on_disk, SEEN, spread_rows

_MAX_ATOMS = 200


@dataclasses.dataclass(frozen=True)
class Dataset:
    """Points, with their classes and elements if the file has them.

    Attributes:
        points: The points, those held out at the end; an array on disk if they stay
            there.
        labels: The class of each, -1 where it is unknown; or its energy in kT, less
            their mean, NaN where it is unknown.
        group: The symmetry.
        num_classes: The number of classes.
        species: The element of each atom.
        formulas: The elements of each formula, the most frequent first, where the
            molecules have several; their number is the label, and rows of zeros stand
            behind the atoms of small ones.
        num_held_out: The number of points that training does not see.
        columns: What the file calls the coordinates.
        classes: What it calls the classes.
        label: The column of the classes.
        energies: The energy of each molecule in eV, NaN where it is unknown.
        forces: The forces on the atoms in eV / Angstrom, NaN where they are unknown.
        kelvin: The temperature at which they are learned and judged.
    """

    points: Any
    labels: np.ndarray | None
    group: AbstractGroup
    num_classes: int | None = None
    species: tuple[str, ...] | None = None
    formulas: tuple[tuple[str, ...], ...] | None = None
    num_held_out: int = 0
    columns: tuple[str, ...] | None = None
    classes: tuple[str, ...] | None = None
    label: str | None = None
    energies: np.ndarray | None = None
    forces: np.ndarray | None = None
    kelvin: float | None = None

    @property
    def num_train(self) -> int:
        """The number of points that training sees."""
        return len(self.points) - self.num_held_out

    def train(self) -> "Dataset":
        """Return what training sees."""
        return self.rows(slice(0, self.num_train), 0)

    def held_out(self) -> "Dataset":
        """Return what training does not see."""
        return self.rows(slice(self.num_train, None), 0)

    def rows(self, rows: Any, num_held_out: int) -> "Dataset":
        """Return some points, of which the last ones are held out."""
        known = {"labels": self.labels, "energies": self.energies}
        known["forces"] = self.forces
        return dataclasses.replace(
            self, points=self.points[rows], num_held_out=num_held_out,
            **{name: v if v is None else v[rows] for name, v in known.items()},
        )  # fmt: skip

    def in_memory(self) -> "Dataset":
        """Return what memory has room for: some of the points, if they are on disk."""
        if not isinstance(self.points, np.memmap):
            return self
        held_out = spread_rows(max(1, self.num_held_out), SEEN) + self.num_train
        held_out = held_out[: self.num_held_out]
        rows = spread_rows(self.num_train, SEEN)
        if self.labels is not None:  # some of each class
            _, first = np.unique(self.labels[: self.num_train], return_index=True)
            rows = np.union1d(rows, first)
        part = self.rows(np.concatenate([rows, held_out]), len(held_out))
        return dataclasses.replace(part, points=jnp.asarray(part.points, float))

    def of_formula(self, number: int) -> "Dataset":
        """Return the molecules of one formula, without rows left over."""
        assert self.formulas is not None
        assert self.labels is not None
        species, here = self.formulas[number], self.labels == number
        part = self.rows(here, int(here[self.num_train :].sum()))
        num, forces = len(species), part.forces
        return dataclasses.replace(
            part, points=part.points[:, :num], labels=None, species=species,
            group=PointCloud(species, 3), formulas=None,
            forces=None if forces is None else forces[:, :num],
        )  # fmt: skip

    def names(self) -> dict[str, Any]:
        """Return what coordinates and classes are called, to keep with a model."""
        named = {"columns": self.columns, "classes": self.classes, "label": self.label}
        return {
            key: list(value) if isinstance(value, tuple) else value
            for key, value in named.items()
            if value is not None
        }


@gate
def read_dataset(path: pathlib.Path, problem: Problem, batch_size: int) -> Dataset:
    """Return the data of a file or a folder of images, checked and in random order.

    Raises:
        ValueError: If the file, or what it holds, is not what the problem needs.
    """
    arrays = path.suffix in (".npy", ".npz")
    _check(
        arrays or not problem.stream,
        f"--stream is for .npy and .npz files, but got {path}.",
    )
    _check(
        is_table(path) or (problem.columns, problem.label) == (None, None),
        f"--columns and --label are for tables, such as .csv, not {path}.",
    )
    large = arrays and path.is_file() and path.stat().st_size > max_bytes()
    streams = problem.stream or large
    if is_molecules(path):
        dataset = _read_molecules(path, problem)
    else:
        dataset = _read_points(path, problem, streams)
    num = len(dataset.points)
    dataset = dataclasses.replace(
        dataset, num_held_out=round(problem.held_out * num), kelvin=problem.kelvin
    )
    _check(
        dataset.num_train >= batch_size,
        f"{path} holds {num} points; {dataset.num_train} are left for training, fewer "
        f"than a batch of {batch_size}. Give a smaller --batch-size or --held-out.",
    )
    if not streams:
        order = np.asarray(jr.permutation(jr.key(problem.seed), num))
        dataset = dataset.rows(order, dataset.num_held_out)
        dataset = dataclasses.replace(dataset, points=jnp.asarray(dataset.points))
    if dataset.num_classes is not None:
        seen = np.unique(np.asarray(dataset.train().labels))
        seen = seen[seen >= 0]
        missing = np.argmax(np.append(seen, -1) != np.arange(len(seen) + 1))
        _check(
            missing >= dataset.num_classes,
            f"The classes in {path} go up to {dataset.num_classes - 1}, but training "
            f"sees none of class {missing}: number the classes from 0 on without gaps, "
            "and give enough points of each.",
        )
    return dataset if problem.kelvin is None else _with_energies(path, problem, dataset)


def _check(good: bool | np.bool_, otherwise: str) -> None:
    if not good:
        raise DataError(otherwise)


def _read_points(path: pathlib.Path, problem: Problem, streams: bool) -> Dataset:
    """Return the points of a file, not of molecules, in its order."""
    labels = columns = classes = None
    if path.is_dir():
        points, labels = read_image_folder(path)
        classes = image_classes(path)
    elif is_table(path):
        named = problem.columns and [w.strip() for w in problem.columns.split(",")]
        table = read_table(path, named, problem.label if problem.labels else None)
        points, labels, columns = table.points, table.labels, table.columns
        classes = table.classes
    else:
        _check(
            path.suffix in (".npy", ".npz"),
            f"{path} must be an .npy file, an .npz file with `x` and perhaps `y`, a "
            "table (.csv, .tsv, .parquet), molecules (.xyz, .extxyz, .xyz.gz, .traj, "
            ".db, .pdb) or a folder of images.",
        )
        points = map_points(path) if streams else read_points(path)
        if isinstance(points, np.memmap):
            check_on_disk(points, str(path))
        if problem.labels:
            labels = read_labels(path, len(points))
    points, group = _with_group(path, problem, points)
    group.check_shape(points.shape[1:])
    if labels is None or not problem.labels:
        return Dataset(points, None, group, columns=columns)
    try:
        num_classes = int(check_classes(labels).max()) + 1
    except ValueError as error:
        raise DataError(
            f"The classes in the array `y` of {path} are invalid: {error} Or leave "
            "them out with --no-labels."
        ) from None
    return Dataset(
        points, labels, group, num_classes, columns=columns, classes=classes,
        label=problem.label,
    )  # fmt: skip


def _with_group(
    path: pathlib.Path, problem: Problem, points: np.ndarray
) -> tuple[np.ndarray, AbstractGroup]:
    """Return the points, as clouds of particles if they are, and the symmetry."""
    if problem.group != "point-cloud":
        _check(
            (problem.dim, problem.species) == (None, None),
            "--dim and --species are for --group point-cloud.",
        )
        return points, parse_group(problem.group)
    dim = problem.dim or (points.shape[2] if points.ndim == 3 else None)
    if dim is None:
        raise DataError(
            f"{path} holds rows of {points.shape[1]} numbers: give --dim, the "
            "dimension of space."
        )
    points = as_particles(points, dim)
    num = points.shape[1]
    _check(
        num > 1,
        f"{path} holds one particle a point with --dim {dim}, and a point cloud needs "
        "two; for single vectors take so:3 or o:3.",
    )
    species = problem.species.split() if problem.species else [0] * num
    return points, PointCloud(species, dim)


def _read_molecules(path: pathlib.Path, problem: Problem) -> Dataset:
    """Return molecules, centered, with zeros behind those smaller than the largest.

    With energies and forces, NaN where they are unknown, if any frame has some.
    """
    _check(path.is_file(), f"There is no file {path}.")
    try:
        frames = read_molecules(path)
    except MissingASE as error:
        raise DataError(str(error)) from None
    # Atoms of an element are alike, so each molecule's may be put into one order.
    kinds = [tuple(sorted(frame.symbols)) for frame in frames]
    formulas = [kind for kind, _ in collections.Counter(kinds).most_common()]
    sizes = list(map(len, kinds))
    _check_molecules(path, problem, sizes, len(formulas))
    points = np.zeros((len(frames), max(sizes), 3), np.float32)
    energies = np.full(len(frames), np.nan)
    forces = np.full_like(points, np.nan)
    for index, (frame, num) in enumerate(zip(frames, sizes, strict=True)):
        order = np.argsort(frame.symbols, kind="stable")
        points[index, :num] = (frame.positions - frame.positions.mean(axis=0))[order]
        energies[index] = np.nan if frame.energy is None else frame.energy
        if frame.forces is not None:
            forces[index] = 0
            forces[index, :num] = frame.forces[order]
    known = {
        "energies": energies if np.isfinite(energies).any() else None,
        "forces": forces if any(f.forces is not None for f in frames) else None,
    }
    if len(formulas) > 1:  # the group depends on the formula
        numbers = {kind: number for number, kind in enumerate(formulas)}
        labels = np.array([numbers[kind] for kind in kinds])
        return Dataset(points, labels, Trivial(), formulas=tuple(formulas), **known)
    group = PointCloud(formulas[0], 3)
    return Dataset(points, None, group, species=formulas[0], **known)


def _check_molecules(
    path: pathlib.Path, problem: Problem, sizes: list[int], num_formulas: int
) -> None:
    """Raise unless molecules of such sizes suit the problem and fit into memory."""
    given = (problem.group, problem.species, problem.dim or 3)
    _check(
        given == ("point-cloud", None, 3),
        f"{path} holds molecules, with their elements: give --group point-cloud, and "
        "leave --species out, and --dim.",
    )
    _check(len(sizes) > 1, f"{path} must hold at least two molecules.")
    for number, size in enumerate(sizes, 1):
        _check(
            2 <= size <= _MAX_ATOMS,
            f"{path}: molecules must have 2 to {_MAX_ATOMS} atoms, but molecule "
            f"{number} has {size}. For larger ones give `es.fit` a custom energy.",
        )
    _check(
        num_formulas == 1 or (problem.network != "features" and not problem.kelvin),
        f"{path} holds molecules of {num_formulas} formulas, which a graph network "
        "learns together: leave --network features and --kelvin out.",
    )
    what = f"{path}, filled up to {max(sizes)} atoms,"
    check_read_size(what, 12 * len(sizes) * max(sizes))


def _with_energies(path: pathlib.Path, problem: Problem, dataset: Dataset) -> Dataset:
    """Return data whose energies in kT, less their mean, are its labels if learned.

    A density does not determine the constant of its energy. A graph network's is that
    of blurred molecules, whose energies are unknown: it learns from forces alone.
    """
    features, num = problem.network == "features", dataset.num_train
    known = np.zeros(0) if dataset.energies is None else dataset.energies[:num]
    known = known[np.isfinite(known)]
    energies = features and len(np.unique(known)) > 1
    forces = None if dataset.forces is None else np.nansum(dataset.forces[:num] ** 2)
    _check(
        energies if forces is None else forces > 0,
        "--kelvin is for molecules with forces, or for --network features with "
        "energies, as an extended .xyz has them; those in the training part of "
        f"{path} are none, unknown or all alike: leave it out.",
    )
    if not (energies and problem.labels):
        return dataset
    labels = (dataset.energies - known.mean()) / (BOLTZMANN * (dataset.kelvin or 1.0))
    return dataclasses.replace(dataset, labels=labels.astype(np.float32))
