"""Files that the Atomic Simulation Environment reads, and its atoms."""

import gzip
import os
import pathlib
import sqlite3
import types
from collections.abc import Iterable
from typing import Any

import numpy as np

from equistein._gate import gate
from equistein.molecules._xyz import check_memory, Molecule, read_xyz, XYZError

READ_BY_ASE = (".traj", ".db", ".pdb", ".gz")


class MissingASE(ImportError):
    """ASE is not installed."""


@gate
def is_molecules(path: str | os.PathLike[str]) -> bool:
    """Return whether a file holds molecules, by its name."""
    path = pathlib.Path(path)
    last = [suffix.lower() for suffix in path.suffixes[-2:]]
    if last and last[-1] == ".gz":
        return last[0] in (".xyz", ".extxyz")
    return bool(last) and last[-1] in (".xyz", ".extxyz", *READ_BY_ASE)


@gate
def read_molecules(path: str | os.PathLike[str]) -> list[Molecule]:
    """Return the frames of an .xyz file, or of a .traj, .db, .pdb or .xyz.gz by ASE.

    Args:
        path: The file.

    Raises:
        XYZError: If it is not what it should be, or is periodic.
        MissingASE: If it is not an .xyz file, and ASE is not installed.
    """
    path = pathlib.Path(path)
    if path.suffix.lower() in (".xyz", ".extxyz"):
        return read_xyz(path)
    ase()
    from ase.io import iread

    check_memory(path, 2 * path.stat().st_size)
    try:
        if path.suffix.lower() == ".gz":
            _check_unpacked(path)
            frames = from_atoms(iread(path, index=":", format="extxyz"))
        else:
            frames = from_atoms(iread(path, index=":"))
    except XYZError as error:
        raise XYZError(f"{path}: {error}") from None
    except (sqlite3.Error, Exception) as error:  # a damaged file can raise anything
        reason = f"{type(error).__name__}: {error}"
        raise XYZError(f"{path} cannot be read by ASE: {reason}") from None
    if not frames:
        raise XYZError(f"{path} holds no molecules.")
    return frames


@gate
def from_atoms(atoms: Iterable[Any]) -> list[Molecule]:
    """Return molecules of `ase.Atoms`, with energies and forces that are known.

    Raises:
        XYZError: If one is periodic, or has a position that is not finite.
    """
    frames = []
    for index, each in enumerate(atoms):
        if np.any(each.pbc):
            raise XYZError(
                f"frame {index} is periodic, which is not supported; if it is "
                "isolated, set `atoms.pbc = False`."
            )
        positions = np.array(each.positions, np.float64)
        if not np.all(np.abs(positions) <= 1e6):
            raise XYZError(f"frame {index} has positions that are not finite.")
        found = getattr(each.calc, "results", {}) if each.calc is not None else {}
        energy, forces = found.get("energy"), found.get("forces")
        if forces is not None and np.shape(forces) != positions.shape:
            raise XYZError(
                f"frame {index} has {len(positions)} atoms, but forces of shape "
                f"{np.shape(forces)}: give each atom one, in x, y and z."
            )
        frames.append(
            Molecule(
                tuple(each.get_chemical_symbols()),
                positions,
                None if energy is None else float(energy),
                None if forces is None else np.array(forces, np.float64),
            )
        )
    return frames


@gate
def ase() -> types.ModuleType:
    """Return the package `ase`.

    Raises:
        MissingASE: If it is not installed.
    """
    try:
        import ase
    except ImportError:
        raise MissingASE(
            "This needs ASE, the Atomic Simulation Environment: "
            "pip install 'equistein[ase]'."
        ) from None
    return ase


def _check_unpacked(path: pathlib.Path) -> None:
    """Raise unless what is packed is of a size that is read."""
    size = 0
    with gzip.open(path) as file:
        while block := file.read(2**20):
            size += len(block)
            check_memory(path, 2 * size)
