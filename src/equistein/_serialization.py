"""One file format: an .npz archive of arrays with a JSON header and a checksum.

Models, checkpoints, samples and finished parts of runs are such files. They hold no
pickles and never name code to import; sizes are checked before anything is unpacked.
"""

import hashlib
import io
import json
import pathlib
import zipfile
from collections.abc import Mapping
from typing import Any

import numpy as np

from equistein._files import write_whole
from equistein._limits import check_read_size, JSON_GROWTH, LimitError

VERSION = 1
_HEADER, _CHECKSUM = "header.json", "sha256"


class FileFormatError(ValueError):
    """A file is not of the expected kind, is damaged, or has another version."""


def save_arrays(
    path: pathlib.Path,
    kind: str,
    header: Mapping[str, Any],
    arrays: Mapping[str, np.ndarray],
) -> None:
    """Write arrays and a JSON header into a file, whole or not at all.

    `kind` says what it holds, such as "samples"; reading asks for the same.
    """
    text = json.dumps({"equistein": kind, "version": VERSION, "header": header})
    entries: dict[str, Any] = {k: np.asarray(value) for k, value in arrays.items()}
    entries[_HEADER] = np.frombuffer(text.encode(), np.uint8)
    entries[_CHECKSUM] = np.array(_checksum_of(entries))
    content = io.BytesIO()
    np.savez(content, allow_pickle=False, **entries)
    write_whole(path, content.getvalue())


def load_arrays(
    path: pathlib.Path, kind: str, remedy: str = ""
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the header and the arrays of a file that `save_arrays` wrote.

    The remedy, for a damaged file, is the end of a sentence.
    """
    remedy = remedy and f": {remedy}"
    with open(path, "rb") as file:
        try:
            entries = unpack_arrays(file, str(path))
            stored = str(entries.pop(_CHECKSUM))
            checksum = _checksum_of(entries)
            text = entries.pop(_HEADER).tobytes()
            check_read_size(f"The header of {path}", JSON_GROWTH * len(text))
            about = json.loads(text)
            found_kind, version = about["equistein"], about["version"]
            header = about["header"]
        except LimitError:
            raise
        except Exception as error:  # a damaged file may raise anything
            raise FileFormatError(
                f"{path} is no file of equistein that holds a {kind}, or is damaged "
                f"({type(error).__name__}: {error}){remedy}."
            ) from None
    if (found_kind, version) != (kind, VERSION):
        raise FileFormatError(
            f"{path} holds a {found_kind} of version {version}, not a {kind} of "
            f"version {VERSION}{remedy}."
        )
    if checksum != stored:
        raise FileFormatError(
            f"{path} is damaged: its content does not match its checksum{remedy}."
        )
    return header, entries


def _checksum_of(arrays: Mapping[str, np.ndarray]) -> str:
    """Return the SHA-256 of the names, shapes, types and numbers of arrays."""
    digest = hashlib.sha256()
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def unpack_arrays(file: Any, name: str) -> dict[str, np.ndarray]:
    """Return the arrays of an .npz file, if they fit into memory."""
    with zipfile.ZipFile(file) as archive:
        check_read_size(name, sum(part.file_size for part in archive.infolist()))
    file.seek(0)
    with np.load(file, allow_pickle=False) as stored:
        return dict(stored)
