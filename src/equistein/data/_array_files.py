"""Read points from a user's file. Files are untrusted."""

import math
import pathlib
import struct
import zipfile
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from equistein._limits import check_read_size, LimitError
from equistein.molecules import has_rdkit, Molecule, order_by_bonds

_LARGEST = 1e15  # squares of larger numbers overflow in single precision
_LEAST = 4  # bytes that a number becomes, in single precision
_REMEDY = "give fewer points, or floating point by np.save and --stream"


class DataError(ValueError):
    """A file does not hold what was expected."""


def read_points(path: pathlib.Path) -> np.ndarray:
    """Return the points in an .npy file, or array `x` of an .npz file, as float32."""
    if not path.is_file() or path.suffix not in (".npy", ".npz"):
        raise DataError(f"There is no file {path} that ends in .npy or .npz.")
    values = stored_arrays(path, ["x"])["x"]
    if (
        values.dtype.kind not in "iuf" or values.ndim < 2 or len(values) < 2
        or 0 in values.shape
    ):  # fmt: skip
        raise DataError(
            f"{path} must hold at least two points of real numbers, stacked on axis 0, "
            f"but has shape {values.shape} and type {values.dtype}."
        )
    with np.errstate(over="ignore"):
        values = values.astype(np.float32)
    bad = np.array([not np.max(np.abs(row)) <= _LARGEST for row in values])
    if bad.any():
        raise DataError(
            f"{path} must hold finite numbers of at most 1e15, but {bad.sum()} of "
            f"{len(values)} points are not, the first at index {bad.argmax()}."
        )
    return values


def map_points(path: pathlib.Path | str) -> np.memmap:
    """Return the points in an .npy file, or the array `x` of an .npz file, on disk.

    It is read on demand, for `es.training.OnDisk(points, epoch_batches=...)`.
    """
    try:
        points = _map_file(pathlib.Path(path))
    except Exception as error:  # a damaged file can raise nearly anything
        raise DataError(
            f"{path} cannot be read from disk on demand: {error}."
        ) from None
    if points.ndim < 2 or len(points) < 2 or points.dtype.kind != "f":
        raise DataError(
            f"{path} must hold at least two points in floating point, stacked on axis "
            f"0, to be read on demand, but has shape {points.shape} and type "
            f"{points.dtype}."
        )
    return points


def _map_file(path: pathlib.Path) -> np.memmap:
    start = 0
    with path.open("rb") as file:
        if path.suffix == ".npz":
            part = zipfile.ZipFile(path).getinfo("x.npy")
            if part.compress_type != zipfile.ZIP_STORED:
                raise ValueError("it is compressed; save it with np.savez")
            file.seek(part.header_offset)
            header = file.read(30)  # the lengths of two fields end it
            start = part.header_offset + 30 + sum(struct.unpack("<HH", header[26:]))
        file.seek(start)
        shape, is_fortran, dtype = _array_header(file)
        order = "F" if is_fortran else "C"
        return np.memmap(path, dtype, "r", file.tell(), shape, order)


def read_labels(path: pathlib.Path, num: int) -> np.ndarray | None:
    """Return the classes in the array `y`, or `labels`, of an .npz file, or None."""
    if path.suffix != ".npz":
        return None
    found = stored_arrays(path, [], ["y", "labels"])
    if not found:
        return None
    labels = found["y"] if "y" in found else found["labels"]
    if (
        labels.shape != (num,) or labels.dtype.kind not in "iubf"
        or np.any(labels != np.round(labels)) or np.any(np.abs(labels) > 2**31 - 2)
    ):  # fmt: skip
        raise DataError(
            f"The array `y` of {path} must hold one class for each of its {num} "
            "points, whole numbers from 0 on, or -1 where unknown, but has shape "
            f"{labels.shape} and type {labels.dtype}."
        )
    return labels.astype(np.int64)


def stored_arrays(
    path: pathlib.Path, needed: Sequence[str], others: Sequence[str] = ()
) -> dict[str, np.ndarray]:
    """Return needed and other arrays of a file by name; that in an .npy file is `x`."""
    names = [*needed, *others]
    try:
        check_read_size(str(path), _memory(path, names), _REMEDY)
        with path.open("rb") as file:
            stored = np.load(file, allow_pickle=False)
            stored = {"x": stored} if isinstance(stored, np.ndarray) else stored
            held = list(stored)
            arrays = {name: np.asarray(stored[name]) for name in names if name in held}
    except LimitError as error:
        raise DataError(str(error)) from None
    except Exception as error:  # a damaged file can raise nearly anything
        raise DataError(
            f"{path} is damaged, too large or no NumPy file of plain numbers: {error}. "
            "Delete it, or copy it again."
        ) from None
    for name in needed:
        if name not in arrays:
            raise DataError(
                f"{path} must hold an array `{name}`, but has "
                f"{', '.join(held) or 'nothing'}. Points are `x`; of molecules, "
                "positions are `R`, atomic numbers `z`, forces `F`, energies `E`."
            )
    return arrays


def _memory(path: pathlib.Path, names: Collection[str]) -> int:
    """Return the bytes that arrays become by their headers, or by what is stored."""

    def needed_by(part: Any, stored: int) -> int:
        shape, _, dtype = _array_header(part)
        return max(stored, math.prod(shape) * max(_LEAST, dtype.itemsize))

    if not zipfile.is_zipfile(path):
        with path.open("rb") as file:
            return needed_by(file, path.stat().st_size)
    needed = 0
    with zipfile.ZipFile(path) as archive:
        for name in {f"{name}.npy" for name in names} & set(archive.namelist()):
            about = archive.getinfo(name)
            with archive.open(name) as part:
                needed += needed_by(part, max(about.file_size, about.compress_size))
    return needed


def _array_header(file: Any) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Return the shape, whether the order is Fortran's, and the type of an array."""
    if np.lib.format.read_magic(file) != (1, 0):  # whose headers may be of any length
        raise ValueError("it is no array of plain numbers")
    return np.lib.format.read_array_header_1_0(file)


def as_particles(points: np.ndarray, dim: int) -> np.ndarray:
    """Reshape rows `x1 y1 x2 y2 ...` to particles, `(n, particle, dim)`."""
    if points.ndim == 3 and points.shape[2] == dim:
        return points
    if dim < 1 or points.ndim == 3 or points[0].size % dim:
        raise DataError(
            f"Points of shape {points.shape[1:]} do not divide into particles of "
            f"dimension {dim}."
        )
    return points.reshape(len(points), -1, dim)


def stack_molecules(
    molecules: Sequence[Molecule],
    symbols: Sequence[str],
    bonds: Sequence[tuple[int, int]] = (),
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return positions, energies and forces of molecules, NaN where unknown.

    They must have the elements `symbols`, whose order each molecule's atoms are put
    into: those of one element are alike, but for `bonds`, where RDKit finds these.
    """
    places = np.argsort(np.argsort(symbols, kind="stable"))
    orders = [np.argsort(each.symbols, kind="stable")[places] for each in molecules]
    if bonds and has_rdkit():
        found = (order_by_bonds(each, symbols, bonds) for each in molecules)
        orders = [new or old for new, old in zip(found, orders, strict=True)]
    pairs = list(zip(molecules, orders, strict=True))
    unknown = np.full((len(symbols), 3), np.nan)
    forces = [unknown if m.forces is None else m.forces[order] for m, order in pairs]
    energies = [np.nan if m.energy is None else m.energy for m in molecules]
    positions = np.array([m.positions[order] for m, order in pairs])
    return positions, np.array(energies), np.array(forces)
