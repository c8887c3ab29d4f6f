"""Keep what is compiled from one command to the next."""

import contextlib
import hashlib
import pathlib
import platform
import re
import sys
import warnings

import jax

from equistein.data import cache_folder

_LIMIT = 2**30  # bytes that are kept; those of a run of `dw4` are some millions
_CPUINFO = pathlib.Path("/proc/cpuinfo")


def keep_compiled() -> None:
    """Let JAX keep compiled programs in the cache folder, apart for each processor.

    Those written first go where there are too many. JAX's own variables come first:
    `JAX_COMPILATION_CACHE_DIR` is another folder, and `JAX_ENABLE_COMPILATION_CACHE=0`
    keeps nothing. What cannot be read is compiled anew.
    """
    chosen = jax.config.values
    kept = chosen["jax_enable_compilation_cache"]
    if not kept or chosen["jax_compilation_cache_dir"]:
        return
    folder = cache_folder() / "compiled" / _processor()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / ".used").touch()
        _remove_oldest(folder)
    except OSError as error:
        print(
            f"equistein: what is compiled is not kept for the next command: {error}. "
            "Set EQUISTEIN_CACHE to a folder that can be written.",
            file=sys.stderr,
        )
        return
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    warnings.filterwarnings(
        "ignore", message="Error (reading|writing) persistent compilation cache"
    )


def _processor() -> str:
    """Return a name of this kind of processor: others may lack its instructions."""
    told = platform.processor()
    with contextlib.suppress(OSError):
        flags = re.search(r"(?m)^(flags|Features)\s*:.*$", _CPUINFO.read_text())
        told = flags.group() if flags else told
    digest = hashlib.sha256(told.encode()).hexdigest()[:12]
    return f"{platform.machine()}-{digest}"


def _remove_oldest(folder: pathlib.Path) -> None:
    """Remove the files that were written first until the rest is within the limit."""
    files = []
    for path in folder.iterdir():
        with contextlib.suppress(OSError):  # another command may have removed it
            files.append((path.stat().st_mtime, path.stat().st_size, path))
    total = sum(size for _, size, _ in files)
    for _, size, path in sorted(files):
        if total <= _LIMIT:
            break
        path.unlink(missing_ok=True)
        total -= size
