"""`equistein doctor`: what is installed, and where things are kept."""

import dataclasses
import importlib.metadata
import os
import pathlib
import platform
import re

import jax

from equistein.cli._output import answer
from equistein.data import cache_folder, CACHE_VARIABLE, DATA_VARIABLE

_REQUIRED = re.compile(r"""^([\w.-]+)[^;]*(?:;.*extra\s*==\s*["']([a-z]+)["'])?""")
_FOR_DEVELOPERS = ("dev", "lint", "docs", "bench")


@dataclasses.dataclass(frozen=True)
class Doctor:
    """Show versions, devices, extras, data and folders."""

    def execute(self) -> int:
        """Print them; a missing extra with the command that installs it."""
        extras: dict[str, dict[str, str | None]] = {}
        for text in importlib.metadata.requires("equistein") or ():
            match = _REQUIRED.match(text)
            if match and match[1] != "equistein" and match[2] not in _FOR_DEVELOPERS:
                extras.setdefault(match[2] or "", {})[match[1]] = _version(match[1])
        versions = {"python": platform.python_version(), "jaxlib": _version("jaxlib")}
        versions |= {"equistein": _version("equistein"), **extras.pop("")}
        devices = [str(device) for device in jax.devices()]
        cache, data = cache_folder(), os.environ.get(DATA_VARIABLE)
        size = sum(each.stat().st_size for each in cache.rglob("*") if each.is_file())
        lines = [f"{name:<18}{v or 'missing'}" for name, v in versions.items()]
        lines.append(f"{'devices':<18}{', '.join(devices)}")
        for extra, packages in extras.items():
            missing = ", ".join(name for name, v in packages.items() if v is None)
            remedy = f"pip install 'equistein[{extra}]'  (no {missing})"
            lines.append(f"extra {extra:<12}{remedy if missing else 'installed'}")
        about = data or "not set: data are built or downloaded"
        about += "" if os.path.isdir(data or ".") else "  (no folder)"
        lines.append(f"{DATA_VARIABLE:<18}{about}")
        lines.append(f"{CACHE_VARIABLE:<18}{cache}, {size / 2**20:.0f} MiB")
        num, used = _count_compiled()
        lines.append(f"{'programs':<18}{num} compiled, {used} of them used again")
        answer(
            "\n".join(lines), versions=versions, devices=devices, extras=extras,
            data=data, cache={"folder": cache, "bytes": size},
            programs={"kept": num, "used_again": used},
        )  # fmt: skip
        return 0


def _version(name: str) -> str | None:
    """Return the version of a package, None where it is missing."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _count_compiled() -> tuple[int, int]:
    """Return how many programs JAX keeps, and how many of them were used again."""
    folder = jax.config.values["jax_compilation_cache_dir"] or cache_folder()
    programs, used = [*pathlib.Path(folder).rglob("*-cache")], 0
    for program in programs:
        accessed = program.with_name(program.name.removesuffix("-cache") + "-atime")
        if accessed.is_file():  # nanoseconds since 1970, of the last use
            last = int.from_bytes(accessed.read_bytes(), "little")
            used += last > program.stat().st_mtime_ns + 10**9
    return len(programs), used
