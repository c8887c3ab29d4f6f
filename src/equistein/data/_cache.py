"""Files of `$EQUISTEIN_DATA`; the caches of arrays and compiled programs."""

import contextlib
import hashlib
import json
import os
import pathlib
import platform
import re
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np

from equistein._serialization import load_arrays, save_arrays
from equistein.data._array_files import as_particles, DataError, read_points

CACHE_VARIABLE = "EQUISTEIN_CACHE"
DATA_VARIABLE = "EQUISTEIN_DATA"
_KIND = "cached array"
_MOST_COMPILED = 2**30  # bytes of programs that are kept
_CPU_FEATURES = r"(?m)^(flags|Features)\s*:.*$"  # the instructions of a CPU, in Linux


def cache_folder() -> pathlib.Path:
    """Return the cache: `$EQUISTEIN_CACHE`, or equistein in the user's cache folder."""
    base = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    chosen = os.environ.get(CACHE_VARIABLE) or pathlib.Path(base) / "equistein"
    return pathlib.Path(chosen).expanduser()


def local_file(path: str) -> pathlib.Path | None:
    """Return a file of the folder `$EQUISTEIN_DATA`, or None where it is missing."""
    folder = os.environ.get(DATA_VARIABLE)
    file = pathlib.Path(folder or "").expanduser() / path
    return file if folder and file.is_file() else None


def published_clouds(path: str, num_particles: int, dim: int) -> np.ndarray | None:
    """Return the clouds in a file of the folder `$EQUISTEIN_DATA`, centered.

    None where the folder or the file, such as `dw4/dimer_4particles.npy`, is missing.
    """
    file = local_file(path)
    if file is None:
        return None
    clouds = as_particles(read_points(file), dim)
    if clouds.shape[1] != num_particles:
        text = f"clouds of {num_particles} particles, but they have {clouds.shape[1]}"
        raise DataError(f"{file} must hold {text}.")
    return clouds - clouds.mean(axis=1, keepdims=True)


def save_cached(path: pathlib.Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write arrays into a file of the cache, if it can be written."""
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        save_arrays(path, _KIND, {}, arrays)


def load_cached(path: pathlib.Path) -> dict[str, np.ndarray] | None:
    """Return the arrays that `save_cached` wrote, or None if there is no file."""
    if not path.is_file():
        return None
    try:
        return load_arrays(path, _KIND, "delete it, and it is made again")[1]
    except ValueError as error:
        raise DataError(str(error)) from None


def cached_array(
    name: str,
    settings: Mapping[str, Any],
    shape: tuple[int, ...],
    make: Callable[[], np.ndarray],
) -> np.ndarray:
    """Return the array that `make` returns, from the cache if it is there.

    A file that is damaged or of another shape is replaced. Its name begins with `name`;
    `settings` are everything that the array depends on, in JSON's types.
    """
    described = json.dumps(dict(settings), sort_keys=True).encode()
    digest = hashlib.sha256(described).hexdigest()[:16]
    path = cache_folder() / f"{name}-{digest}.npz"
    with contextlib.suppress(DataError):
        cached = (load_cached(path) or {}).get("x")
        if cached is not None and cached.shape == shape and cached.dtype == np.float32:
            return cached
    array = np.asarray(make(), np.float32)
    assert array.shape == shape
    save_cached(path, {"x": array})
    return array


def enable_compilation_cache() -> None:
    """Let JAX keep compiled programs on disk, so that a second process is faster.

    The commands of `equistein` call it. The folder is `compiled` in that of
    `EQUISTEIN_CACHE`, one for each kind of CPU. JAX's own variables take precedence:
    `JAX_COMPILATION_CACHE_DIR` is another folder, and `JAX_ENABLE_COMPILATION_CACHE=0`
    turns the cache off. Above 1 GiB those used longest ago are deleted.
    """
    config = jax.config.values
    is_off = not config["jax_enable_compilation_cache"]
    if is_off or config["jax_compilation_cache_dir"]:
        return
    # Programs of one kind of CPU may use instructions that others lack.
    cpu, info = platform.processor(), pathlib.Path("/proc/cpuinfo")
    if info.is_file() and (flags := re.search(_CPU_FEATURES, info.read_text())):
        cpu = flags.group()
    name = f"{platform.machine()}-{hashlib.sha256(cpu.encode()).hexdigest()[:12]}"
    folder = str(cache_folder() / "compiled" / name)
    jax.config.update("jax_compilation_cache_dir", folder)
    jax.config.update("jax_compilation_cache_max_size", _MOST_COMPILED)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    # A cache that cannot be read or written only costs time.
    ignored = "Error (reading|writing) persistent compilation cache"
    warnings.filterwarnings("ignore", message=ignored)
