"""Read points from a user's file. Files are untrusted."""

import pathlib
import zipfile
from collections.abc import Sequence

import numpy as np

MAX_BYTES = 2**31
_LARGEST = 1e15  # squares of larger numbers overflow in single precision


class DataError(ValueError):
    """A file does not hold what was expected."""


def read_points(path: pathlib.Path) -> np.ndarray:
    """Return the points in an .npy file, or the array `x` of an .npz file, as float32.

    Args:
        path: The file; axis 0 counts points.

    Raises:
        DataError: If the file is missing, too large, damaged, pickled, or does not hold
            finite numbers.
    """
    if not path.is_file():
        raise DataError(f"There is no file {path}.")
    if path.suffix not in (".npy", ".npz"):
        raise DataError(
            f"{path} must be an .npy file, or an .npz file with an array `x`, but its "
            f"name ends in {path.suffix or 'nothing'!r}."
        )
    values = stored_arrays(path, ["x"])["x"]
    if values.dtype.kind not in "iuf":
        raise DataError(
            f"{path} must hold an array of numbers, real numbers, but got "
            f"{values.dtype}."
        )
    if values.ndim < 2 or len(values) < 2 or 0 in values.shape:
        raise DataError(
            f"{path} must hold at least two points, stacked on axis 0, but its array "
            f"has shape {values.shape}."
        )
    with np.errstate(over="ignore"):
        values = values.astype(np.float32)
    values[np.abs(values) > _LARGEST] = np.inf
    bad = ~np.isfinite(values).reshape(len(values), -1).all(axis=1)
    if bad.any():
        raise DataError(
            f"{path} must hold finite numbers of at most 1e15, but {bad.sum()} of "
            f"{len(values)} points are not, the first at index {bad.argmax()}."
        )
    return values


def has_labels(path: pathlib.Path | str) -> bool:
    """Whether a path is an .npz file with an array `y`, before it is read."""
    path = pathlib.Path(path)
    if path.suffix != ".npz" or not zipfile.is_zipfile(path):
        return False
    with zipfile.ZipFile(path) as archive:
        return "y.npy" in archive.namelist()


def read_labels(path: pathlib.Path, num: int) -> np.ndarray | None:
    """Return the classes in the array `y` of an .npz file, or None if it has none.

    Args:
        path: The file, whose points were read.
        num: The number of points.

    Raises:
        DataError: If there is not one whole number for each point.
    """
    if path.suffix != ".npz":
        return None
    labels = stored_arrays(path, ["x"], ["y"]).get("y")
    if labels is None:
        return None
    if labels.shape != (num,):
        raise DataError(
            f"The array `y` of {path} must hold one class for each of its {num} "
            f"points, but has shape {labels.shape}."
        )
    whole = labels.dtype.kind in "iub"
    if labels.dtype.kind == "f":
        whole = bool(np.all(labels == np.round(labels)))
    if not whole or np.any(np.abs(labels.astype(float)) > 2**31 - 2):
        raise DataError(
            f"The array `y` of {path} must hold classes: whole numbers from 0 on, and "
            "-1 where the class is unknown."
        )
    return labels.astype(np.int64)


def stored_arrays(
    path: pathlib.Path, needed: Sequence[str], others: Sequence[str] = ()
) -> dict[str, np.ndarray]:
    """Return arrays of a file by their names; the one in an .npy file is `x`.

    Args:
        path: The file.
        needed: The arrays it must have.
        others: Those it may have.

    Raises:
        DataError: If the file is damaged, pickled or too large, or an array is missing.
    """
    try:
        size = _unpacked_size(path)
        if size > MAX_BYTES:
            raise ValueError(f"it has {size} bytes; at most {MAX_BYTES} are read")
        with path.open("rb") as file:
            stored = np.load(file, allow_pickle=False)
            if isinstance(stored, np.ndarray):
                stored = {"x": stored}
            held = list(stored)
            wanted = [name for name in (*needed, *others) if name in held]
            found = {name: np.asarray(stored[name]) for name in wanted}
    except Exception as error:  # a damaged file can raise nearly anything
        raise DataError(
            f"{path} is damaged, too large or no NumPy file of plain numbers: {error}. "
            "Delete it, or copy it anew."
        ) from None
    for name in needed:
        if name not in found:
            has = ", ".join(held) or "nothing"
            raise DataError(f"{path} must hold an array `{name}`, but has {has}.")
    return found


def _unpacked_size(path: pathlib.Path) -> int:
    size = path.stat().st_size
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as packed:
            size = max(size, sum(part.file_size for part in packed.infolist()))
    return size


def as_particles(points: np.ndarray, dim: int) -> np.ndarray:
    """Reshape rows of coordinates to particles, `(n, particle, dim)`.

    Args:
        points: Rows `x1 y1 x2 y2 ...`, or particles already.
        dim: The dimension of space.

    Raises:
        DataError: If the rows do not divide.
    """
    if dim < 1:
        raise DataError(f"The dimension of space must be at least 1, but got {dim}.")
    if points.ndim == 3 and points.shape[2] == dim:
        return points
    if points.ndim == 3 or points[0].size % dim:
        raise DataError(
            f"Points of shape {points.shape[1:]} do not divide into particles, for the "
            f"dimension is {dim}."
        )
    return points.reshape(len(points), -1, dim)
