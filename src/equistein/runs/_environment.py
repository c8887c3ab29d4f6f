"""The environment of a run: versions, machine, settings of JAX."""

import contextlib
import datetime
import importlib.metadata
import os
import pathlib
import platform
import re
import subprocess
import sys

import jax
import numpy as np

from equistein.runs._folder import RunFolder, UserError

_CPUINFO = pathlib.Path("/proc/cpuinfo")
_PACKAGES = (
    "equistein", "jax", "jaxlib", "equinox", "optax", "numpy", "scipy", "matplotlib",
    "blackjax", "numpyro", "rdkit",
)  # fmt: skip


def write_environment(folder: RunFolder) -> None:
    """Write environment.json; a resumed run keeps what it was started with.

    It records what could make numbers differ elsewhere: versions, CPU, devices,
    precision and the variables of JAX and XLA.
    """
    if (folder.path / "environment.json").is_file():
        return
    folder.write_json(
        "environment.json",
        {
            "started": datetime.datetime.now(datetime.UTC).isoformat(),
            "command": [pathlib.Path(sys.argv[0]).name, *sys.argv[1:]],
            "settings_sha256": folder.fingerprint(),
            "commit": _commit(),
            "python": platform.python_version(),
            "platform": platform.platform(),
            "processor": _processor(),
            "cpus": os.cpu_count(),
            "devices": [str(device) for device in jax.devices()],
            "x64": jax.dtypes.canonicalize_dtype(float) == np.float64,
            "variables": {
                name: os.environ[name]
                for name in sorted(os.environ)
                if name.startswith(("EQUISTEIN_", "JAX_", "XLA_"))
            },
            "versions": _versions(),
        },
    )


def _versions() -> dict[str, str]:
    """Return the versions of the packages that numbers depend on, of those there are.

    None of them is imported for it.
    """
    found = {}
    for name in _PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found


def check_settings(folder: RunFolder) -> None:
    """Raise unless config.json has the settings that the run was started with.

    Raises:
        UserError: If it was changed since.
    """
    if (folder.path / "environment.json").is_file():
        started = folder.read_json("environment.json").get("settings_sha256")
        if started != folder.fingerprint():
            raise UserError(
                f"{folder.path / 'config.json'} was changed after the run began, and "
                "finished parts belong to the settings before: put them back, or start "
                "a new run."
            )


def _processor() -> str:
    """Return the name of the processor, as far as the system tells."""
    with contextlib.suppress(OSError):
        found = re.search(r"(?m)^model name\s*:\s*(.*)$", _CPUINFO.read_text())
        if found:
            return found[1]
    return platform.processor()


def _commit() -> str | None:
    """Return the commit of the source this was imported from, if it is a checkout."""
    root = pathlib.Path(__file__).parents[3]
    if not (root / ".git").exists():
        return None
    try:
        done = subprocess.run(
            ["git", "describe", "--always", "--dirty"],
            cwd=root, capture_output=True, text=True, timeout=10, check=True,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
