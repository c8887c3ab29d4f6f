"""Arrays in a file that others wrote, whose sizes are known before it is unpacked."""

import hashlib
import io
import math
import os
import zipfile
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from equistein._limits import check_bytes

_LONGEST = 2**16  # bytes of an array's header


def checked_arrays(
    file: io.BufferedIOBase, what: str, remedy: str = ""
) -> dict[str, np.ndarray]:
    """Return the arrays of an .npz file by their names, if they fit into memory.

    Args:
        file: Its content, at the beginning.
        what: What it is called in errors.
        remedy: What to do where they are too large.

    Raises:
        LimitError: If they do not fit.
        Exception: Nearly any, if the file is damaged.
    """
    check_unpacked(file, what, remedy=remedy)
    with np.load(file, allow_pickle=False) as stored:
        return dict(stored)


def check_unpacked(
    file: io.BufferedIOBase,
    what: str,
    names: Collection[str] | None = None,
    *,
    least: int = 1,
    remedy: str = "",
) -> None:
    """Raise unless the arrays of an .npy or .npz file fit into memory.

    The header of each tells how many numbers it has, and how large they become; but it
    is the file's word, so the bytes of the file count as well.

    Args:
        file: Its content, at the beginning, where it is left.
        what: What it is called in errors.
        names: The arrays that count; None is all.
        least: The bytes that each number becomes at least.
        remedy: What to do where they are too large.

    Raises:
        LimitError: If they do not fit.
        Exception: Nearly any, if the file is damaged.
    """

    def needed_by(part: Any, held: int) -> int:
        shape, _, dtype = array_header(part)
        return max(held, math.prod(shape) * max(least, dtype.itemsize))

    is_archive = zipfile.is_zipfile(file)
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    if not is_archive:
        needed = needed_by(file, size)
    else:
        files = None if names is None else {f"{name}.npy" for name in names}
        needed = 0
        with zipfile.ZipFile(file) as packed:
            for each in packed.infolist():
                if files is None or each.filename in files:
                    held = max(each.file_size, each.compress_size)
                    with packed.open(each) as part:
                        needed += needed_by(part, held)
    file.seek(0)
    check_bytes(what, needed, remedy)


def array_header(file: Any) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Return the shape, whether it is Fortran's order, and the type of an array.

    Raises:
        ValueError: If a file at this place has no such header, or a longer one than
            there is reason for, which NumPy would make room for before it reads it.
    """
    version = np.lib.format.read_magic(file)
    size = file.read(2 if version == (1, 0) else 4)
    length = int.from_bytes(size, "little")
    if length > _LONGEST:
        raise ValueError(f"the header of an array has {length} bytes")
    header = io.BytesIO(size + file.read(length))
    if version == (1, 0):
        return np.lib.format.read_array_header_1_0(header)
    return np.lib.format.read_array_header_2_0(header)


def checksum_of(arrays: Mapping[str, np.ndarray]) -> str:
    """Return the SHA-256 of names, shapes, types and numbers of arrays."""
    found = hashlib.sha256()
    for name in sorted(arrays):
        array = arrays[name]
        found.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()
