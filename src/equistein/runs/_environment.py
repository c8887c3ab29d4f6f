"""What a run runs on."""

import datetime
import importlib.metadata
import os
import pathlib
import platform
import subprocess
import sys

import jax
import numpy as np

from equistein.runs._folder import RunFolder

_PACKAGES = ("equistein", "jax", "jaxlib", "equinox", "optax", "numpy", "matplotlib")


def write_environment(folder: RunFolder) -> None:
    """Write environment.json; a resumed run keeps what it was started with."""
    if (folder.path / "environment.json").is_file():
        return
    folder.write_json(
        "environment.json",
        {
            "started": datetime.datetime.now(datetime.UTC).isoformat(),
            "command": ["equistein", *sys.argv[1:]],
            "commit": _commit(),
            "python": platform.python_version(),
            "platform": platform.platform(),
            "cpus": os.cpu_count(),
            "devices": [str(device) for device in jax.devices()],
            "x64": jax.dtypes.canonicalize_dtype(float) == np.float64,
            "versions": {name: importlib.metadata.version(name) for name in _PACKAGES},
        },
    )


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
