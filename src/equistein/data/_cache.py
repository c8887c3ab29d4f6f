"""What takes long to make or to fetch, kept on disk."""

import contextlib
import hashlib
import io
import json
import os
import pathlib
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from equistein._archive import checksum_of
from equistein._files import write_whole
from equistein.data._array_files import all_arrays, DataError

CACHE_VARIABLE = "EQUISTEIN_CACHE"
DATA_VARIABLE = "EQUISTEIN_DATA"
_CHECKSUM = "sha256"
_SHA256 = re.compile("sha256:[0-9a-f]{64}")


def cache_folder() -> pathlib.Path:
    """Return where things are kept: `$EQUISTEIN_CACHE`, or the user's cache folder."""
    base = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    chosen = os.environ.get(CACHE_VARIABLE) or pathlib.Path(base) / "equistein"
    return pathlib.Path(chosen).expanduser()


def local_file(path: str) -> pathlib.Path | None:
    """Return a file of the folder `$EQUISTEIN_DATA`, or None where it is missing."""
    folder = os.environ.get(DATA_VARIABLE)
    file = pathlib.Path(folder or "").expanduser() / path
    return file if folder and file.is_file() else None


def keep(path: pathlib.Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write arrays and their checksum into a file of the cache, if it can be written.

    Args:
        path: The .npz file.
        arrays: The arrays by name.
    """
    content = io.BytesIO()
    named: dict[str, Any] = {**arrays, _CHECKSUM: np.array(checksum_of(arrays))}
    np.savez(content, allow_pickle=False, **named)
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, content.getvalue())


def kept_arrays(path: pathlib.Path) -> dict[str, np.ndarray] | None:
    """Return the arrays that `keep` wrote, or None if there is no file.

    Raises:
        DataError: If the file is damaged.
    """
    if not path.is_file():
        return None
    found = all_arrays(path)
    if str(found.pop(_CHECKSUM, None)) != checksum_of(found):
        raise DataError(
            f"{path} is damaged: its content does not match its checksum. Delete it, "
            "and it is made anew."
        )
    return found


def cached_array(
    name: str,
    settings: Mapping[str, Any],
    shape: tuple[int, ...],
    make: Callable[[], np.ndarray],
) -> np.ndarray:
    """Return the array that `make` gives, from the cache where it is there.

    A file that is damaged or of another shape is made anew.

    Args:
        name: The beginning of the file's name.
        settings: All that the array depends on; in JSON's types.
        shape: The shape it must have.
        make: What makes it.
    """
    described = json.dumps(dict(settings), sort_keys=True).encode()
    digest = hashlib.sha256(described).hexdigest()[:16]
    path = cache_folder() / f"{name}-{digest}.npz"
    with contextlib.suppress(DataError):
        kept = (kept_arrays(path) or {}).get("x")
        if kept is not None and kept.shape == shape and kept.dtype == np.float32:
            return kept
    array = np.asarray(make(), np.float32)
    assert array.shape == shape
    keep(path, {"x": array})
    return array


def fetched(name: str, url: str, checksum: str, file: str, remedy: str) -> pathlib.Path:
    """Return a file of the cache, downloaded if it is not there.

    One that does not match its checksum is not kept.

    Args:
        name: What is fetched, in words.
        url: Its address.
        checksum: Such as `sha256:...`.
        file: Its name in the cache.
        remedy: What to do where it cannot be fetched.

    Raises:
        DataError: If it cannot be fetched, or does not match.
    """
    import pooch

    assert url.startswith("https://"), url
    assert _SHA256.fullmatch(checksum), checksum
    try:
        kept = pooch.retrieve(
            url, checksum, fname=file, path=cache_folder(), progressbar=True
        )
    except Exception as error:  # the network has many ways to fail
        raise DataError(f"{name} could not be fetched: {error}. {remedy}") from None
    return pathlib.Path(kept)
