"""What takes long to make or to fetch, kept on disk."""

import contextlib
import hashlib
import json
import os
import pathlib
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO

import numpy as np

from equistein.data._array_files import DataError, stored_arrays

CACHE_VARIABLE = "EQUISTEIN_CACHE"
DATA_VARIABLE = "EQUISTEIN_DATA"


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


def keep(path: pathlib.Path, write: Callable[[BinaryIO], None]) -> None:
    """Write a file of the cache: whole, or not at all where nothing can be written."""
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with part.open("wb") as file:
            write(file)
        part.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)


def cached_array(
    name: str,
    settings: Mapping[str, Any],
    shape: tuple[int, ...],
    make: Callable[[], np.ndarray],
) -> np.ndarray:
    """Return the array that `make` gives, from the cache where it is there.

    A file that is damaged, of another shape or not finite is made anew.

    Args:
        name: The beginning of the file's name.
        settings: All that the array depends on; in JSON's types.
        shape: The shape it must have.
        make: What makes it.
    """
    described = json.dumps(dict(settings), sort_keys=True).encode()
    digest = hashlib.sha256(described).hexdigest()[:16]
    path = cache_folder() / f"{name}-{digest}.npy"
    with contextlib.suppress(DataError):
        kept = stored_arrays(path, ["x"])["x"]
        good = kept.shape == shape and kept.dtype == np.float32
        if good and np.all(np.isfinite(kept)):
            return kept
    array = np.asarray(make(), np.float32)
    assert array.shape == shape
    keep(path, lambda file: np.save(file, array))
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

    try:
        kept = pooch.retrieve(
            url, checksum, fname=file, path=cache_folder(), progressbar=True
        )
    except Exception as error:  # the network has many ways to fail
        raise DataError(f"{name} could not be fetched: {error}. {remedy}") from None
    return pathlib.Path(kept)
