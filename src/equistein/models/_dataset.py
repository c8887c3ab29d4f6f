"""Reads the user's data from a file, and checks them."""

import dataclasses
import pathlib

import jax.numpy as jnp
import jax.random as jr
import numpy as np

from equistein._check_arguments import check_arguments
from equistein._limits import max_bytes
from equistein.data import (
    as_particles,
    DataError,
    Dataset,
    describe,
    is_table,
    map_points,
    read_frames,
    read_image_folder,
    read_labels,
    read_points,
    read_table,
    unused_arrays,
)
from equistein.groups import AbstractGroup, parse_group, PointCloud
from equistein.models._contrastive import num_classes_of
from equistein.models._settings import Problem
from equistein.molecules import BOLTZMANN, is_molecules, READ_OPTIONS
from equistein.training import check_on_disk

_DESCRIBED = "group species energies forces kelvin charge columns notes".split()


@check_arguments
def read_dataset(path: pathlib.Path, problem: Problem) -> Dataset:
    """Return the checked data of a file or a folder, shuffled if in memory."""
    arrays = path.suffix.lower() in (".npy", ".npz")
    has_molecules = is_molecules(path)
    for names, allowed, kinds in (
        (("stream",), arrays, ".npy and .npz files"),
        ("columns class_column sep decimal".split(), is_table(path), "tables, as .csv"),
        (("kelvin",), has_molecules, "molecules with energies or forces"),
        (set(READ_OPTIONS) - {"species"}, has_molecules, "molecules"),
        (("dim", "species"), problem.group == "point-cloud", "--group point-cloud"),
    ):
        given = [f"--{n.replace('_', '-')}" for n in names if getattr(problem, n)]
        if allowed or not given:
            continue
        if path.suffix.lower() == ".npz":
            read_points(path)  # or raise, and list the arrays it has
        raise DataError(f"{path}: {', '.join(given)} is for {kinds}: leave it out.")
    large = arrays and path.is_file() and path.stat().st_size > max_bytes()
    if has_molecules:
        if (problem.group, problem.dim or 3) != ("point-cloud", 3):
            raise DataError(
                f"{path} is for molecules: give --group point-cloud, and no --dim, or "
                "save other numbers (such as draws of ArviZ) by np.save."
            )
        options = {name: getattr(problem, name) for name in READ_OPTIONS}
        dataset = Dataset.of_molecules(read_frames(path, **options), str(path))
    else:
        dataset = _read_points(path, problem, problem.stream or large)
    num = len(dataset.points)
    known = {"kelvin": problem.kelvin, "num_held_out": round(problem.held_out * num)}
    known["notes"] = unused_arrays(path, dataset.notes)
    dataset = dataclasses.replace(dataset, **known)
    if dataset.num_train < 2:
        raise DataError(f"{path} trains on {dataset.num_train} of {num}: give more.")
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
        if missing:
            raise DataError(
                f"Training sees no point of class {missing} in {path}: give more "
                "points, or a smaller --held-out; numbers go from 0 on, without gaps."
            )
    return dataset if problem.kelvin is None else _with_energies(path, problem, dataset)


def _read_points(path: pathlib.Path, problem: Problem, streams: bool) -> Dataset:
    """Return the points of a file, not of molecules, in its order."""
    labels, columns, classes, notes = None, None, None, ()
    if path.is_dir():
        points, labels, classes = read_image_folder(path)
    elif is_table(path):
        wanted = problem.columns and [w.strip() for w in problem.columns.split(",")]
        options = problem.class_column, problem.sep, problem.decimal
        table = read_table(path, wanted, *options)
        points, labels, notes = table.points, table.labels, table.notes
        columns, classes = table.columns, table.classes
    else:
        if path.suffix.lower() not in (".npy", ".npz"):
            raise DataError(
                f"{path} must be an .npy file, .npz (`x`, perhaps `y`), a table (.csv, "
                ".tsv, .parquet), molecules (.xyz, .extxyz, .xyz.gz, .traj, .db, .pdb, "
                ".sdf, .xtc, .trr, .dcd, .nc, .h5) or a folder of images."
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
    if dim <= 0:
        raise DataError(f"{path} has rows of {points.shape[1]} numbers: give --dim.")
    points = as_particles(points, dim)
    if points.shape[1] == 1:
        raise DataError(
            f"each point of {path} is a single particle: take so:3 or o:3 for a vector."
        )
    species = problem.species.split() if problem.species else [0] * points.shape[1]
    return points, PointCloud(species, dim)


def _with_energies(path: pathlib.Path, problem: Problem, dataset: Dataset) -> Dataset:
    """Return the data, with energies / kT minus their mean as labels if learned."""
    # A graph network learns the density of blurred molecules: from forces alone.
    by_features, num = problem.network == "features", dataset.num_train
    solved = (problem.network or "linear") == "linear" and problem.wants_density
    known = np.zeros(0) if dataset.energies is None else dataset.energies[:num]
    known = known[np.isfinite(known)]
    uses_energies = by_features and len(np.unique(known)) > 1
    forces, notes = dataset.forces, " ".join(dataset.notes)
    if forces is None:
        good = uses_energies or (solved and (len(known) or "--energy-key" not in notes))
    else:
        good = np.nansum(forces[:num] ** 2) > 0
    if not good:
        raise DataError(
            "--kelvin needs forces that are not all zero, or with --network features "
            f"energies that differ, but the training part of {path} has none for this "
            f"network: leave --kelvin out, or take --energy-key, --forces-key. {notes}"
        )
    if solved or not (uses_energies and problem.labels):
        return dataset
    assert problem.kelvin is not None
    labels = (dataset.energies - known.mean()) / (BOLTZMANN * problem.kelvin)
    return dataclasses.replace(dataset, labels=labels.astype(np.float32))
