"""The user's data: read, checked, and split."""

import collections
import dataclasses
import pathlib
from collections.abc import Sequence
from typing import Literal

import jax.numpy as jnp
import jax.random as jr
import numpy as np

from equistein._numbers import check_fields
from equistein._types import Particles
from equistein.data import (
    as_particles,
    DataError,
    read_image_folder,
    read_labels,
    read_points,
)
from equistein.groups import AbstractGroup, parse_group, Trivial
from equistein.molecules import read_xyz
from equistein.training import check_classes

IMAGE_GROUPS = ("image-rotations", "image-reflections")
_NUM_CLASSES = 10_000
_MAX_ATOMS = 200


@dataclasses.dataclass(frozen=True, kw_only=True)
class Problem:
    """What is fitted to what.

    Attributes:
        group: The symmetry: trivial, cyclic:4, dihedral:5, so:3, o:3, permutations:3,
            signs:2, signed-permutations:3, image-rotations, image-reflections,
            point-cloud, product:permutations:3*cyclic:4 of groups on the same points,
            or direct:permutations:3@3x2+trivial@4 of groups on parts of a flat point.
        dim: For a point cloud, the dimension of space.
        species: For a point cloud, one label a particle, as in "C C O"; by default the
            elements of an .xyz file, or all particles alike.
        network: What the energy is made of: `graph`, for a point cloud, a graph network
            of all particles with an energy for each level of noise; `unet`, for images,
            a U-shaped network with one energy for all levels; or `features`, a
            perceptron of invariant features, or convolutions. None is `graph` for
            clouds without classes, else `features`.
        labels: Whether classes in the file, the array `y`, are learned too.
        held_out: The fraction of the data that is kept from training, to judge by.
        seed: The source of all randomness.
        num_samples: Samples drawn after the fit, for the report.
        ais_steps: The temperatures of the annealed importance sampling of log Z.
    """

    group: str
    dim: int | None = None
    species: str | None = None
    network: Literal["graph", "features", "unet"] | None = None
    labels: bool = True
    held_out: float = 0.1
    seed: int = 0
    num_samples: int = 512
    ais_steps: int = 1_000

    def __post_init__(self):
        check_fields(self, or_zero=("held_out", "seed"), below_one=("held_out",))
        if self.seed >= 2**63:
            raise ValueError(f"`seed` must be below 2^63, but got {self.seed}.")


@dataclasses.dataclass(frozen=True)
class Dataset:
    """Points, with their classes and elements if the file has them.

    Attributes:
        points: The points, those held out at the end.
        labels: The class of each, -1 where it is unknown, or None.
        group: The symmetry.
        num_classes: The number of classes, or None.
        species: The element of each atom, or None.
        formulas: The elements of each formula, the most frequent first, where the
            molecules have several; their number is the label, and rows of zeros stand
            behind the atoms of small ones.
        num_held_out: The number of points that training does not see.
    """

    points: Particles
    labels: np.ndarray | None
    group: AbstractGroup
    num_classes: int | None = None
    species: tuple[str, ...] | None = None
    formulas: tuple[tuple[str, ...], ...] | None = None
    num_held_out: int = 0

    def train(self) -> "Dataset":
        """Return what training sees."""
        return self._rows(slice(0, len(self.points) - self.num_held_out))

    def held_out(self) -> "Dataset":
        """Return what training does not see."""
        return self._rows(slice(len(self.points) - self.num_held_out, None))

    def of_formula(self, number: int) -> "Dataset":
        """Return the molecules of one formula, without rows left over."""
        assert self.formulas is not None
        assert self.labels is not None
        species = self.formulas[number]
        here = self.labels == number
        num_held_out = int(here[len(here) - self.num_held_out :].sum())
        points = self.points[here][:, : len(species)]
        group = parse_group("point-cloud", species=species, dim=points.shape[2])
        return Dataset(points, None, group, species=species, num_held_out=num_held_out)

    def _rows(self, rows: slice) -> "Dataset":
        labels = None if self.labels is None else self.labels[rows]
        return dataclasses.replace(
            self, points=self.points[rows], labels=labels, num_held_out=0
        )


def read_dataset(path: pathlib.Path, problem: Problem, batch_size: int) -> Dataset:
    """Return the data of a file or a folder of images, checked and in random order.

    Raises:
        ValueError: If the file, or what it holds, is not what the problem needs.
    """
    labels = species = formulas = num_classes = None
    if path.suffix.lower() == ".xyz":
        points, formulas, labels = _read_molecules(path, problem)
        if len(formulas) == 1:
            species, formulas, labels = formulas[0], None, None
    elif path.is_dir():
        points, labels = read_image_folder(path)
        labels = labels if problem.labels else None
    else:
        points = _read_points(path, problem)
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
    order = np.asarray(jr.permutation(jr.key(problem.seed), len(points)))
    labels = None if labels is None else labels[order]
    if labels is not None and num_classes is not None:
        missing = set(range(num_classes)) - set(labels[:num_train].tolist())
        if missing:
            raise DataError(
                f"The array `y` of {path} has classes up to {num_classes - 1}, but no "
                f"training point is of class {min(missing)}. Number the classes from 0 "
                "on without gaps, and give enough points of each."
            )
    return Dataset(
        jnp.asarray(points[order]), labels, group, num_classes, species, formulas,
        num_held_out,
    )  # fmt: skip


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


def _read_points(path: pathlib.Path, problem: Problem) -> np.ndarray:
    """Return the points of an array, as clouds of particles if they are."""
    points = read_points(path)
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
) -> tuple[np.ndarray, tuple[tuple[str, ...], ...], np.ndarray]:
    """Return positions, formulas with the most frequent first, and each one's number.

    Molecules are centered, and filled up with zeros to the size of the largest.
    """
    if not path.is_file():
        raise DataError(f"There is no file {path}.")
    frames = read_xyz(path)
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
            f"{sizes.index(odd) + 1} has {odd}. The network sees all pairs of atoms."
        )
    # Atoms of an element are alike, so each molecule's may be put into one order.
    kinds = [tuple(sorted(frame.symbols)) for frame in frames]
    formulas = tuple(kind for kind, _ in collections.Counter(kinds).most_common())
    points = np.zeros((len(frames), max(sizes), 3), np.float32)
    for row, frame in zip(points, frames, strict=True):
        order = np.argsort(frame.symbols, kind="stable")
        centered = frame.positions - frame.positions.mean(axis=0)
        row[: len(order)] = centered[order]
    if len(formulas) > 1 and problem.network == "features":
        raise DataError(
            f"{path} holds molecules of {len(formulas)} formulas, which a graph "
            "network learns together: leave --network features out, or give molecules "
            "of one formula."
        )
    return points, formulas, np.array([formulas.index(kind) for kind in kinds])


def _count_classes(path: pathlib.Path, labels: np.ndarray) -> int:
    try:
        check_classes(labels)
    except ValueError as error:
        raise DataError(
            f"The classes in the array `y` of {path} do not do: {error} Or leave them "
            "out with --no-labels."
        ) from None
    num = int(labels.max()) + 1
    if num > _NUM_CLASSES:
        raise DataError(
            f"The array `y` of {path} holds the class {num - 1}; number the classes "
            f"from 0 on, at most {_NUM_CLASSES} of them."
        )
    return num
