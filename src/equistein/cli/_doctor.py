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

_EXTRA = re.compile(r"""^([A-Za-z0-9_.-]+).*;.*extra\s*==\s*["']([a-z]+)["']""")
_FOR_DEVELOPERS = ("dev", "lint", "docs", "bench")


@dataclasses.dataclass(frozen=True)
class Doctor:
    """Show versions, devices, extras, data and folders."""

    def execute(self) -> int:
        """Print them; a missing extra with the command that installs it."""
        versions = {"python": platform.python_version()} | _versions(_required(None))
        devices = [str(device) for device in jax.devices()]
        extras = {extra: _versions(_required(extra)) for extra in _extras()}
        data, cache = os.environ.get(DATA_VARIABLE), cache_folder()
        size = _size(cache)
        lines = ["Versions"]
        lines += [
            f"  {name:<14}{found or 'missing'}" for name, found in versions.items()
        ]
        lines += ["Devices", f"  {', '.join(devices)} of {os.cpu_count()} processors"]
        lines.append("Extras")
        for extra, packages in extras.items():
            missing = [name for name, found in packages.items() if found is None]
            remedy = f"pip install 'equistein[{extra}]'  (no {', '.join(missing)})"
            lines.append(f"  {extra:<14}{remedy if missing else 'installed'}")
        lines += [
            "Folders",
            f"  {DATA_VARIABLE:<18}{data or 'not set: data are built or downloaded'}"
            + ("" if not data or pathlib.Path(data).is_dir() else "  (no folder)"),
            f"  {CACHE_VARIABLE:<18}{cache}, {size / 2**20:.0f} MiB"
            + ("" if _writable(cache) else "  (cannot be written)"),
        ]
        answer(
            "\n".join(lines), versions=versions, devices=devices, extras=extras,
            data=data, cache={"folder": cache, "bytes": size},
        )  # fmt: skip
        return 0


def _required(extra: str | None) -> list[str]:
    """Return the packages that an extra needs, or that all need."""
    required = importlib.metadata.requires("equistein") or []
    if extra is None:
        always = [text for text in required if ";" not in text]
        bare = [re.split(r"[^A-Za-z0-9_.-]", text)[0] for text in always]
        return ["equistein", "jaxlib", *bare]
    matches = (_EXTRA.match(text) for text in required)
    return [m[1] for m in matches if m and m[2] == extra and m[1] != "equistein"]


def _extras() -> list[str]:
    extras = importlib.metadata.metadata("equistein").get_all("Provides-Extra") or []
    return [name for name in extras if name not in _FOR_DEVELOPERS and _required(name)]


def _versions(names: list[str]) -> dict[str, str | None]:
    """Return the version of each package, None where it is missing."""
    found: dict[str, str | None] = {}
    for name in names:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = None
    return found


def _size(folder: pathlib.Path) -> int:
    """Return the bytes of all files in a folder, of those that stay."""
    total = 0
    for path in folder.rglob("*") if folder.is_dir() else ():
        try:
            total += path.stat().st_size if path.is_file() else 0
        except OSError:
            continue
    return total


def _writable(folder: pathlib.Path) -> bool:
    """Return whether a file can be made in a folder, which need not be there yet."""
    there = next(path for path in (folder, *folder.parents) if path.exists())
    return there.is_dir() and os.access(there, os.W_OK)
