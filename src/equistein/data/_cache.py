"""What takes long to make or to fetch, kept on disk."""

import contextlib
import hashlib
import json
import os
import pathlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from equistein.data._array_files import DataError

CACHE_VARIABLE = "EQUISTEIN_CACHE"


def cache_folder() -> pathlib.Path:
    """Return where things are kept: `$EQUISTEIN_CACHE`, or the user's cache folder."""
    chosen = os.environ.get(CACHE_VARIABLE)
    if chosen:
        return pathlib.Path(chosen).expanduser()
    base = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(base) / "equistein"


def cached_array(
    name: str,
    settings: Mapping[str, Any],
    shape: tuple[int, ...],
    make: Callable[[], np.ndarray],
) -> np.ndarray:
    """Return the array that `make` gives, from the cache where it is there.

    The file is written to a temporary name and renamed. One that is damaged, of another
    shape or not finite is made anew. Where nothing can be written, nothing is kept.

    Args:
        name: The beginning of the file's name.
        settings: All that the array depends on; in JSON's types.
        shape: The shape it must have.
        make: What makes it.
    """
    described = json.dumps(dict(settings), sort_keys=True).encode()
    digest = hashlib.sha256(described).hexdigest()[:16]
    path = cache_folder() / f"{name}-{digest}.npy"
    try:
        kept = np.load(path, allow_pickle=False)
        if (
            isinstance(kept, np.ndarray)
            and kept.shape == shape
            and kept.dtype == np.float32
            and np.all(np.isfinite(kept))
        ):
            return kept
    except Exception:  # a damaged file can raise nearly anything
        pass
    array = np.asarray(make(), np.float32)
    assert array.shape == shape
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with part.open("wb") as file:
            np.save(file, array)
        part.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
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
