"""The user's data, read from a file and checked."""

import collections
import pathlib
from collections.abc import Sequence

import jax.numpy as jnp
import jax.random as jr
import numpy as np

from equistein._gate import gate
from equistein._limits import check_bytes, max_bytes
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
    Table,
    TABLES,
)
from equistein.groups import AbstractGroup, parse_group, Trivial
from equistein.models._dataset import cut, Dataset
from equistein.models._energies_and_forces import with_energies
from equistein.models._problem import Problem
from equistein.molecules import (
    is_molecules,
    MissingASE,
    READ_BY_ASE,
    read_molecules,
)
from equistein.training import check_classes, check_on_disk

IMAGE_GROUPS = ("image-rotations", "image-reflections")
_SUFFIXES = (".npy", ".npz", *TABLES, ".xyz", ".extxyz", *READ_BY_ASE)
_NUM_CLASSES = 10_000
_MAX_ATOMS = 200


@gate
def read_dataset(path: pathlib.Path, problem: Problem, batch_size: int) -> Dataset:
    """Return the data of a file or a folder of images, checked and in random order.

    Raises:
        ValueError: If the file, or what it holds, is not what the problem needs.
    """
    labels = species = formulas = num_classes = table = classes = None
    energies = forces = None
    streams = _streams(path, problem)
    if not is_table(path) and (problem.columns, problem.label) != (None, None):
        raise DataError(
            f"--columns and --label are for tables, such as .csv, not {path}."
        )
    if not path.is_dir() and path.suffix.lower() not in _SUFFIXES:
        raise DataError(
            f"{path} must be an .npy file; an .npz file with an array `x`, and classes "
            "`y` if there are any; a table, .csv, .tsv or .parquet; molecules, .xyz, "
            ".extxyz, .xyz.gz, .traj, .db or .pdb; or a folder of images."
        )
    if is_molecules(path):
        points, formulas, labels, energies, forces = _read_molecules(path, problem)
        if len(formulas) == 1:
            species, formulas, labels = formulas[0], None, None
    elif path.is_dir():
        points, labels = read_image_folder(path)
        labels = labels if problem.labels else None
        classes = None if labels is None else image_classes(path)
    elif is_table(path):
        table = _read_table(path, problem)
        points = _as_clouds(path, problem, table.points)
        labels, classes = table.labels, table.classes
    else:
        points = map_points(path) if streams else read_points(path)
        if isinstance(points, np.memmap):
            check_on_disk(points, str(path))
        points = _as_clouds(path, problem, points)
        if problem.labels:
            labels = read_labels(path, len(points))
    group: AbstractGroup = Trivial()  # which one there is depends on the formula
    if formulas is None:
        group = _group(problem, points.shape[1:], species)
        group.check_shape(points.shape[1:])
        num_classes = None if labels is None else _count_classes(path, labels)
        if labels is not None and problem.network == "graph":
            raise DataError(
                f"A graph network learns no classes, which {path} has: leave them out "
                "with --no-labels, or take --network features."
            )
    num_held_out = round(problem.held_out * len(points))
    num_train = len(points) - num_held_out
    if num_train < batch_size:
        raise DataError(
            f"{path} holds {len(points)} points; {num_train} are left for training, "
            f"fewer than a batch of {batch_size}. Give a smaller --batch-size, or a "
            "smaller --held-out."
        )
    if not streams:
        order = np.asarray(jr.permutation(jr.key(problem.seed), len(points)))
        points = jnp.asarray(points[order])
        labels, energies, forces = (
            cut(known, order) for known in (labels, energies, forces)
        )
    if labels is not None and num_classes is not None:
        missing = set(range(num_classes)) - set(labels[:num_train].tolist())
        if missing:
            raise DataError(
                f"The array `y` of {path} has classes up to {num_classes - 1}, but no "
                f"training point is of class {min(missing)}. Number the classes from 0 "
                "on without gaps, and give enough points of each."
            )
    dataset = Dataset(
        points, labels, group, num_classes, species, formulas, num_held_out,
        columns=table and table.columns, classes=classes, label=table and table.label,
        energies=energies, forces=forces, kelvin=problem.kelvin,
    )  # fmt: skip
    return dataset if problem.kelvin is None else with_energies(path, problem, dataset)


def _streams(path: pathlib.Path, problem: Problem) -> bool:
    """Return whether the points of a file stay on disk."""
    arrays = path.suffix in (".npy", ".npz")
    if problem.stream and not arrays:
        raise DataError(f"--stream is for .npy and .npz files, but got {path}.")
    large = arrays and path.is_file() and path.stat().st_size > max_bytes()
    return problem.stream or large


def _group(
    problem: Problem, shape: tuple[int, ...], species: Sequence[str] | None
) -> AbstractGroup:
    if problem.group != "point-cloud":
        if problem.network == "graph":
            raise DataError("--network graph is for --group point-cloud.")
        if problem.network == "unet" and problem.group not in IMAGE_GROUPS:
            raise DataError(
                f"--network unet is for --group {' or '.join(IMAGE_GROUPS)}."
            )
        return parse_group(problem.group)
    if problem.species is not None:
        species = problem.species.split()
    return parse_group("point-cloud", species=species or [0] * shape[0], dim=shape[1])


def _read_table(path: pathlib.Path, problem: Problem) -> Table:
    """Return the columns that the problem names."""
    columns = None
    if problem.columns is not None:
        columns = [name.strip() for name in problem.columns.split(",")]
    try:
        return read_table(path, columns, problem.label if problem.labels else None)
    except DataError as error:
        known = str(error).replace("`columns`", "--columns")
        raise DataError(known.replace("`label`", "--label")) from None


def _as_clouds(path: pathlib.Path, problem: Problem, points: np.ndarray) -> np.ndarray:
    """Return points as clouds of particles, if they are."""
    if problem.group != "point-cloud":
        if problem.dim is not None or problem.species is not None:
            raise DataError("--dim and --species are for --group point-cloud.")
        return points
    dim = points.shape[2] if points.ndim == 3 else problem.dim
    if dim is None:
        raise DataError(
            f"{path} holds rows of {points.shape[1]} numbers: give --dim, the "
            "dimension of space, to tell the particles apart."
        )
    points = as_particles(points, problem.dim or dim)
    if points.shape[1] < 2:
        raise DataError(
            f"{path} holds one particle a point, and a point cloud needs two: is --dim "
            "right? For single vectors take so:3 or o:3."
        )
    return points


def _read_molecules(
    path: pathlib.Path, problem: Problem
) -> tuple[
    np.ndarray,
    tuple[tuple[str, ...], ...],
    np.ndarray,
    np.ndarray | None,
    np.ndarray | None,
]:
    """Return positions, formulas with the most frequent first, and each one's number.

    And energies and forces, NaN where they are unknown, if any frame has some.
    Molecules are centered, and filled up with zeros to the size of the largest.
    """
    if not path.is_file():
        raise DataError(f"There is no file {path}.")
    try:
        frames = read_molecules(path)
    except MissingASE as error:
        raise DataError(str(error)) from None
    if problem.species is not None or problem.dim not in (None, 3):
        raise DataError(
            f"{path} tells the elements, and their space has 3 dimensions: leave "
            "--species out, and --dim."
        )
    if problem.group != "point-cloud":
        raise DataError(
            f"{path} holds molecules: fit it with --group point-cloud, not "
            f"{problem.group}."
        )
    if len(frames) < 2:
        raise DataError(f"{path} must hold at least two molecules, but holds one.")
    sizes = [len(frame.symbols) for frame in frames]
    if min(sizes) < 2 or max(sizes) > _MAX_ATOMS:
        odd = min(sizes) if min(sizes) < 2 else max(sizes)
        raise DataError(
            f"{path}: molecules must have 2 to {_MAX_ATOMS} atoms, but molecule "
            f"{sizes.index(odd) + 1} has {odd}. The network sees all pairs of atoms: "
            "for larger ones build a custom energy and give it to `es.fit`."
        )
    # Atoms of an element are alike, so each molecule's may be put into one order.
    kinds = [tuple(sorted(frame.symbols)) for frame in frames]
    formulas = tuple(kind for kind, _ in collections.Counter(kinds).most_common())
    check_bytes(
        f"{path}, filled up to {max(sizes)} atoms,", 12 * len(frames) * max(sizes)
    )
    points = np.zeros((len(frames), max(sizes), 3), np.float32)
    energies, forces = np.full(len(frames), np.nan), None
    if any(frame.forces is not None for frame in frames):
        forces = np.zeros_like(points)
    for index, (row, frame) in enumerate(zip(points, frames, strict=True)):
        if frame.energy is not None:
            energies[index] = frame.energy
        order = np.argsort(frame.symbols, kind="stable")
        if forces is not None:
            known = frame.forces
            forces[index, : len(order)] = np.nan if known is None else known[order]
        centered = frame.positions - frame.positions.mean(axis=0)
        row[: len(order)] = centered[order]
    if len(formulas) > 1 and problem.network == "features":
        raise DataError(
            f"{path} holds molecules of {len(formulas)} formulas, which a graph "
            "network learns together: leave --network features out, or give molecules "
            "of one formula."
        )
    numbers = {kind: number for number, kind in enumerate(formulas)}
    known = energies if np.isfinite(energies).any() else None
    return points, formulas, np.array([numbers[kind] for kind in kinds]), known, forces


def _count_classes(path: pathlib.Path, labels: np.ndarray) -> int:
    try:
        check_classes(labels)
    except ValueError as error:
        raise DataError(
            f"The classes in the array `y` of {path} are invalid: {error} Or leave "
            "them out with --no-labels."
        ) from None
    num = int(labels.max()) + 1
    if num > _NUM_CLASSES:
        raise DataError(
            f"The array `y` of {path} holds the class {num - 1}; number the classes "
            f"from 0 on, at most {_NUM_CLASSES} of them."
        )
    return num
