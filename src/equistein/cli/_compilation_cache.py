"""Compiled programs are cached from one command to the next."""

import contextlib
import hashlib
import pathlib
import platform
import re
import sys
import warnings

import jax

from equistein.data import cache_folder

_LIMIT = 2**30  # bytes
_CPUINFO = pathlib.Path("/proc/cpuinfo")


def use_compilation_cache() -> None:
    """Let JAX cache compiled programs, in a folder for each kind of CPU.

    JAX's own variables take precedence: `JAX_COMPILATION_CACHE_DIR` is another folder,
    and `JAX_ENABLE_COMPILATION_CACHE=0` turns the cache off.
    """
    config = jax.config.values
    if not config["jax_enable_compilation_cache"]:
        return
    if config["jax_compilation_cache_dir"]:
        return
    folder = cache_folder() / "compiled" / _cpu()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / ".used").touch()
    except OSError as error:
        print(
            f"equistein: compiled programs are not cached: {error}. Set "
            "EQUISTEIN_CACHE to a folder that can be written.",
            file=sys.stderr,
        )
        return
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_compilation_cache_max_size", _LIMIT)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    warnings.filterwarnings(
        "ignore", message="Error (reading|writing) persistent compilation cache"
    )


def _cpu() -> str:
    """Return a name of this kind of CPU: others may lack its instructions."""
    text = platform.processor()
    with contextlib.suppress(OSError):
        flags = re.search(r"(?m)^(flags|Features)\s*:.*$", _CPUINFO.read_text())
        text = flags.group() if flags else text
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    return f"{platform.machine()}-{digest}"
