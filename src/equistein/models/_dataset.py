"""The user's data: points and what is known of them, and how they are split."""

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np

from equistein.groups import AbstractGroup, parse_group
from equistein.training import SEEN, spread_rows


@dataclasses.dataclass(frozen=True)
class Dataset:
    """Points, with their classes and elements if the file has them.

    Attributes:
        points: The points, those held out at the end; an array on disk if they stay
            there.
        labels: The class of each, -1 where it is unknown; or its energy in kT, less
            their mean, NaN where it is unknown; or None.
        group: The symmetry.
        num_classes: The number of classes, or None.
        species: The element of each atom, or None.
        formulas: The elements of each formula, the most frequent first, where the
            molecules have several; their number is the label, and rows of zeros stand
            behind the atoms of small ones.
        num_held_out: The number of points that training does not see.
        columns: What the coordinates are called, where the file names them.
        classes: What the classes are called, where the file names them.
        label: The column of the classes.
        energies: The energy of each molecule in eV, NaN where it is unknown, or None.
        forces: The forces on the atoms of each in eV / Angstrom, NaN where they are
            unknown, or None.
        kelvin: The temperature at which they are learned and judged, or None.
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

    def train(self) -> "Dataset":
        """Return what training sees."""
        return self._rows(slice(0, len(self.points) - self.num_held_out))

    def held_out(self) -> "Dataset":
        """Return what training does not see."""
        return self._rows(slice(len(self.points) - self.num_held_out, None))

    def in_memory(self) -> "Dataset":
        """Return what memory has room for: some of the points, if they are on disk."""
        if not isinstance(self.points, np.memmap):
            return self
        num_train = len(self.points) - self.num_held_out
        held_out = spread_rows(max(1, self.num_held_out), SEEN) + num_train
        held_out = held_out[: self.num_held_out]
        rows = spread_rows(num_train, SEEN)
        if self.labels is not None:  # some of each class
            _, first = np.unique(self.labels[:num_train], return_index=True)
            rows = np.union1d(rows, first)
        rows = np.concatenate([rows, held_out])
        points = jnp.asarray(self.points[rows], float)
        labels = None if self.labels is None else self.labels[rows]
        return dataclasses.replace(
            self, points=points, labels=labels, num_held_out=len(held_out)
        )

    def of_formula(self, number: int) -> "Dataset":
        """Return the molecules of one formula, without rows left over."""
        assert self.formulas is not None
        assert self.labels is not None
        species = self.formulas[number]
        here = self.labels == number
        num_held_out = int(here[len(here) - self.num_held_out :].sum())
        points = self.points[here][:, : len(species)]
        group = parse_group("point-cloud", species=species, dim=points.shape[2])
        forces = None if self.forces is None else self.forces[here][:, : len(species)]
        return Dataset(
            points, None, group, species=species, num_held_out=num_held_out,
            energies=cut(self.energies, here), forces=forces, kelvin=self.kelvin,
        )  # fmt: skip

    def names(self) -> dict[str, Any]:
        """Return what coordinates and classes are called, to keep with a model."""
        named = {"columns": self.columns, "classes": self.classes, "label": self.label}
        return {
            key: list(value) if isinstance(value, tuple) else value
            for key, value in named.items()
            if value is not None
        }

    def _rows(self, rows: slice) -> "Dataset":
        return dataclasses.replace(
            self, points=self.points[rows], labels=cut(self.labels, rows),
            energies=cut(self.energies, rows), forces=cut(self.forces, rows),
            num_held_out=0,
        )  # fmt: skip


def cut(known: np.ndarray | None, rows: Any) -> np.ndarray | None:
    """Return some rows of what is known of points, if it is."""
    return None if known is None else known[rows]
