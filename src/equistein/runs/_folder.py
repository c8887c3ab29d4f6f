"""The run folder: files written whole and read as untrusted; settings, environment."""

import dataclasses
import datetime
import hashlib
import importlib.metadata
import json
import os
import pathlib
import platform
import shlex
import shutil
import subprocess
import sys
from typing import Any, NoReturn, TypeVar

import cattrs
import filelock
import jax
import numpy as np

from equistein._files import PART, write_whole
from equistein._limits import check_read_size, JSON_GROWTH

_LOCK = ".lock"
_PATIENCE = 3  # seconds in which a process that was killed lets go
_PACKAGES = (
    "equistein", "jax", "jaxlib", "equinox", "optax", "numpy", "scipy", "matplotlib",
    "blackjax", "numpyro", "rdkit",
)  # fmt: skip
Settings = TypeVar("Settings")


class UserError(Exception):
    """A mistake that the user can correct: printed without a traceback, status 2."""


class RunFolder:
    """A directory that holds one run, in which one process works at a time."""

    MODEL = "checkpoint/model.eqx"  # the learned density of a fit

    def __init__(self, path: pathlib.Path):
        self.path = path
        self._lock = filelock.FileLock(path / _LOCK, timeout=_PATIENCE)

    @classmethod
    def create(cls, path: pathlib.Path) -> "RunFolder":
        """Make a new, empty run folder, and hold its lock; or raise `UserError`."""
        folder = cls(path)
        try:
            path.mkdir(parents=True, exist_ok=True)
            _check_empty(path)
            folder.hold()
            _check_empty(path)  # another process may have come first
        except (OSError, ValueError) as error:
            reason = f"Cannot write to {path}: {error}. Choose another --out."
            raise UserError(reason) from None
        return folder

    @classmethod
    def open(cls, path: pathlib.Path) -> "RunFolder":
        """Open the folder of a run; raise `UserError` if it is not one."""
        if not (path / "config.json").is_file():
            raise UserError(f"{path} is not a run folder: it has no config.json.")
        return cls(path)

    def hold(self) -> None:
        """Lock the folder, and remove what killed processes left unfinished."""
        if self._lock.is_locked:
            return
        try:
            self._lock.acquire()
        except filelock.Timeout:
            reason = f"Another process works in {self.path}: stop it first."
            raise UserError(reason) from None
        for place in (self.path, self.path / "checkpoint", self.path / "figures"):
            for part in place.glob(f".*{PART}"):
                part.unlink(missing_ok=True)

    def release(self) -> None:
        """Let other processes in."""
        self._lock.release()

    def has(self, name: str) -> bool:
        """Return whether a file exists."""
        return (self.path / name).is_file()

    def write(self, name: str, content: str | bytes) -> None:
        """Write a file, whole or not at all, unless the folder no longer exists."""
        if isinstance(content, str):  # names of files need not be UTF-8
            content = content.encode("utf-8", "backslashreplace")
        path = self.path / name
        if self.path.is_dir():
            path.parent.mkdir(exist_ok=True)
        write_whole(path, content)

    def write_json(self, name: str, value: Any) -> None:
        """Write a JSON file, in which every number is finite."""
        self.write(name, json.dumps(value, indent=1, allow_nan=False) + "\n")

    def read(self, name: str, growth: int = 1) -> bytes:
        """Return a file's content, if memory has room for `growth` times its size."""
        path = self.path / name
        check_read_size(str(path), growth * path.stat().st_size)
        return path.read_bytes()

    def read_json(self, name: str) -> dict[str, Any]:
        """Return the object in a JSON file; raise `UserError` if it has none."""
        path = self.path / name
        try:
            text = self.read(name, growth=JSON_GROWTH).decode("utf-8")
            value = json.loads(text, parse_constant=_no_number)
        except (OSError, RecursionError, ValueError) as error:
            raise UserError(f"Cannot read {path}: {error}.") from None
        if not isinstance(value, dict):
            raise UserError(f"{path} should hold a JSON object.")
        return value

    def fingerprint(self) -> str:
        """Return the SHA-256 of the settings, by which results know their run."""
        described = self.read_json("config.json")
        described.pop("data", None)  # which may move: its checksum is there too
        text = json.dumps(described, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()


def _check_empty(path: pathlib.Path) -> None:
    # A run killed while it wrote its first file left nothing to lose.
    if any(not file.name.endswith((PART, _LOCK)) for file in path.iterdir()):
        raise UserError(
            f"{path} is not empty, and nothing in it is overwritten: choose another "
            f"--out, or `equistein resume {path}` if it is an unfinished run."
        )


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"it holds {word}, which is no number of JSON")


def write_environment(folder: RunFolder) -> None:
    """Write environment.json, unless the run that is resumed has it.

    It records the command and what could make numbers differ elsewhere: versions, CPU,
    devices, precision and the variables of JAX and XLA.
    """
    if folder.has("environment.json"):
        return
    program = pathlib.Path(sys.argv[0])
    words = [program.name]
    if program.name == "__main__.py":
        words = ["python", "-m", program.parent.name]
    packages = importlib.metadata.distributions()
    versions = {each.name.lower(): each.version for each in packages}
    prefixes = ("EQUISTEIN_", "JAX_", "XLA_")
    variables = sorted(x for x in os.environ.items() if x[0].startswith(prefixes))
    environment = {
        "started": datetime.datetime.now(datetime.UTC).isoformat(),
        "command": shlex.join([*words, *sys.argv[1:]]),
        "settings_sha256": folder.fingerprint(),
        "commit": _commit(),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "processor": platform.processor(),
        "cpus": os.cpu_count(),
        "devices": [str(device) for device in jax.devices()],
        "x64": jax.dtypes.canonicalize_dtype(float) == np.float64,
        "variables": dict(variables),
        "versions": {name: versions[name] for name in _PACKAGES if name in versions},
    }
    folder.write_json("environment.json", environment)


def _commit() -> str | None:
    """Return the commit of the source this was imported from, if it is a checkout."""
    root = pathlib.Path(__file__).parents[3]
    words = ["git", "-C", str(root), "describe", "--always", "--dirty"]
    if (root / ".git").exists() and shutil.which("git"):
        return subprocess.run(words, capture_output=True, text=True).stdout.strip()
    return None


def check_settings(folder: RunFolder) -> None:
    """Raise `UserError` if config.json was changed after the run began."""
    if not folder.has("environment.json"):
        return
    started = folder.read_json("environment.json").get("settings_sha256")
    if started != folder.fingerprint():
        raise UserError(
            f"{folder.path / 'config.json'} was changed after the run began: put its "
            "settings back, or start a new run."
        )


def settings_to_json(settings: Any) -> dict[str, Any]:
    """Return a dataclass of numbers, strings, tuples and such dataclasses as JSON."""
    try:
        return json.loads(json.dumps(dataclasses.asdict(settings), allow_nan=False))
    except ValueError:
        raise ValueError(
            f"Every number of a {type(settings).__name__} must be finite: {settings}."
        ) from None


def settings_from_json(kind: type[Settings], values: Any) -> Settings:
    """Return settings of a dataclass with the stored values, or raise `ValueError`."""
    try:
        settings = cattrs.Converter(forbid_extra_keys=True).structure(values, kind)
    except Exception as error:  # cattrs collects errors of any type in groups
        reasons = "; ".join(cattrs.transform_error(error, format_exception=_reason))
        raise ValueError(f"invalid {kind.__name__}: {reasons}") from None
    # Compared as text, for JSON tells True from 1, which Python does not.
    stored, text = settings_to_json(settings), lambda v: json.dumps(v, sort_keys=True)
    wrong = [n for n in stored if n not in values or text(values[n]) != text(stored[n])]
    if wrong:
        raise ValueError(
            f"invalid {kind.__name__}: {', '.join(wrong)} missing or of another type"
        )
    return settings


def _reason(error: BaseException, kind: Any) -> str:
    """Return what is wrong: of an invalid value the message of the dataclass."""
    if type(error) is ValueError:
        return str(error)
    return cattrs.v.format_exception(error, kind)
