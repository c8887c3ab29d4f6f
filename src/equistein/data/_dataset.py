"""A data set in memory or on disk, with what is known of it."""

import collections
import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Int

from equistein.data._array_files import DataError, stack_molecules
from equistein.data._summary import DataSummary
from equistein.groups import AbstractGroup, Molecule, PeriodicCloud, PointCloud
from equistein.molecules import atomic_numbers_of, formula, main_hand

PREVIEW_SIZE = 8_192  # points that stand for data that are not all in memory
_MAX_ATOMS = 200
_MAX_IN_CELL = 2_000
_NAMED = 5  # formulas, in an error


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

    @staticmethod
    def of_molecules(frames: Any, name: str) -> "Dataset":
        """Return centered molecules; energies and forces that are unknown are NaN."""
        sizes, cell = np.array([len(frame.symbols) for frame in frames]), frames[0].cell
        most = _MAX_ATOMS if cell is None else _MAX_IN_CELL
        bad = (sizes < 2) | (sizes > most)
        if bad.any():
            raise DataError(
                f"{name}: molecules must have 2 to {most} atoms, but that at "
                f"index {bad.argmax()} has {sizes[bad.argmax()]}."
            )
        kinds = [formula(f.symbols) + f"{f.charge:+}" * bool(f.charge) for f in frames]
        formulas = [
            f"{kind} ({num}, the first at index {kinds.index(kind)})"
            for kind, num in collections.Counter(kinds).most_common(_NAMED)
        ]
        if len(formulas) > 1:
            raise DataError(
                f"{name} holds {', '.join(formulas)}: choose one, as by --formula "
                f"{formula(frames[0].symbols)}, or give the --charge of all."
            )
        species = tuple(frames[0].symbols)
        points, energies, forces = stack_molecules(frames, species)
        group = PointCloud(species, 3)
        if cell is not None:
            group = PeriodicCloud(species, cell)
        else:
            points -= points.mean(axis=1, keepdims=True)
        if frames.bonds:
            group = Molecule((frames.bonds, atomic_numbers_of(species)))
        return Dataset(
            points.astype(np.float32), None, group, species=species,
            energies=energies if np.isfinite(energies).any() else None,
            forces=forces.astype(np.float32) if np.isfinite(forces).any() else None,
            charge=frames[0].charge, notes=frames.notes,
        )  # fmt: skip

    @property
    def molecule(self) -> tuple[str, ...] | None:
        """The elements of a molecule; None for other points, and atoms in a cell."""
        return None if self.group.is_periodic else self.species

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

    def about(self) -> dict[str, Any]:
        """Return what a density learned from them is saved with."""
        names = ("columns", "classes", "class_column", "charge", "kelvin")
        known = {name: getattr(self, name) for name in names}
        found = {k: [*v] if isinstance(v, tuple) else v for k, v in known.items() if v}
        if self.group.is_periodic:
            found["cell"] = [list(edge) for edge in self.group.cell]  # type: ignore
        if self.species:
            found["atomic_numbers"] = [*atomic_numbers_of(self.species)]
            hand = self.molecule and main_hand(self.molecule, np.asarray(self.points))
            if hand and hand[1] == 1:
                found["stereo_smiles"] = [*hand[0]]
        return found | {"data_summary": self.summary}

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


def spread_rows(num: int, wanted: int) -> Int[np.ndarray, " row"]:
    """Return at most as many rows as wanted, evenly over all."""
    return np.unique(np.linspace(0, num - 1, min(num, wanted)).astype(int))
