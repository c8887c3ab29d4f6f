"""JAX's cache of compiled programs, in a folder of equistein."""

import hashlib
import pathlib
import platform
import re
import warnings

import jax

from equistein._numbers import check_positive
from equistein.data._cache import cache_folder

_CPU_FEATURES = r"(?m)^(flags|Features)\s*:.*$"  # the instructions of a CPU, in Linux


def enable_compilation_cache(max_bytes: int = 2**30) -> None:
    """Let JAX keep compiled programs on disk, so that a second process is faster.

    The commands of `equistein` call it. The folder is `compiled` in that of
    `EQUISTEIN_CACHE`, one for each kind of CPU. JAX's own variables take precedence:
    `JAX_COMPILATION_CACHE_DIR` is another folder, and `JAX_ENABLE_COMPILATION_CACHE=0`
    turns the cache off.

    Args:
        max_bytes: The size from which on those used longest ago are deleted.
    """
    check_positive("enable_compilation_cache", max_bytes=max_bytes)
    config = jax.config.values
    if (
        config["jax_compilation_cache_dir"]
        or not config["jax_enable_compilation_cache"]
    ):
        return
    # Programs of one kind of CPU may use instructions that others lack.
    cpu, info = platform.processor(), pathlib.Path("/proc/cpuinfo")
    if info.is_file() and (flags := re.search(_CPU_FEATURES, info.read_text())):
        cpu = flags.group()
    name = f"{platform.machine()}-{hashlib.sha256(cpu.encode()).hexdigest()[:12]}"
    folder = str(cache_folder() / "compiled" / name)
    jax.config.update("jax_compilation_cache_dir", folder)
    jax.config.update("jax_compilation_cache_max_size", int(max_bytes))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    # A cache that cannot be read or written only costs time.
    ignored = "Error (reading|writing) persistent compilation cache"
    warnings.filterwarnings("ignore", message=ignored)


def count_compiled() -> tuple[int, int, int]:
    """Return how many programs JAX keeps, how many were used again, and their bytes."""
    folder = jax.config.values["jax_compilation_cache_dir"] or cache_folder()
    programs = [*pathlib.Path(folder).rglob("*-cache")]
    used = 0
    for program in programs:
        accessed = program.with_name(program.name.removesuffix("-cache") + "-atime")
        if accessed.is_file():  # nanoseconds since 1970, of the last use
            last = int.from_bytes(accessed.read_bytes(), "little")
            used += last > program.stat().st_mtime_ns + 10**9
    return len(programs), used, sum(each.stat().st_size for each in programs)
