"""Arrays in the IDX format, of MNIST and its variants. Files are untrusted."""

import gzip
import math
import pathlib
import zlib

import numpy as np

from equistein._limits import check_bytes, LimitError
from equistein.data._array_files import DataError

_MOST_AXES = 8


def read_idx(path: pathlib.Path | str) -> np.ndarray:
    """Return the bytes in an IDX file, gzipped or not.

    The format is two zero bytes, the type (8 for unsigned bytes), the number of axes,
    each axis's length as a big-endian 32-bit integer, and the values.

    Args:
        path: The file.

    Raises:
        DataError: If the file is missing, damaged, truncated, or holds another type.
    """
    path = pathlib.Path(path)
    try:
        with path.open("rb") as file:
            packed = file.read(2) == b"\x1f\x8b"
        with gzip.open(path) if packed else path.open("rb") as file:
            head = file.read(4)
            right = len(head) == 4 and head[:3] == b"\0\0\x08"
            if not right or not 1 <= head[3] <= _MOST_AXES:
                raise DataError(
                    f"{path} is no IDX file of unsigned bytes: it should begin with "
                    f"0, 0, 8 and the number of axes, but begins with {list(head)}."
                )
            lengths = file.read(4 * head[3])
            if len(lengths) < 4 * head[3]:
                raise DataError(f"{path} is truncated: it ends in its header.")
            shape = tuple(int(n) for n in np.frombuffer(lengths, ">u4"))
            size = math.prod(shape)
            check_bytes(
                f"{path}, by its header,", 4 * math.prod(max(n, 1) for n in shape)
            )
            values = file.read(size + 1)
    except LimitError as error:
        raise DataError(str(error)) from None
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path} cannot be read: {error}. Copy it again.") from None
    if len(values) != size:
        found = "more" if len(values) > size else f"{len(values)}, it is truncated"
        raise DataError(
            f"{path} must hold {size} bytes, for the shape {shape} in its header, but "
            f"holds {found}. Copy it again."
        )
    return np.frombuffer(values, np.uint8).reshape(shape)
