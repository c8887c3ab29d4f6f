"""The run folder: files written atomically, and read as what nobody vouches for."""

import io
import json
import pathlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from equistein._files import write_whole
from equistein.runs._config import migrated, VERSION


class UserError(Exception):
    """A mistake of the user's: printed without a traceback, exit status 2."""


class RunFolder:
    """A directory that holds one run."""

    def __init__(self, path: pathlib.Path):
        self.path = path

    @classmethod
    def create(cls, path: pathlib.Path) -> "RunFolder":
        """Make a new, empty run folder.

        Raises:
            UserError: If the folder has something in it, or cannot be written.
        """
        try:
            path.mkdir(parents=True, exist_ok=True)
            # What a run killed in the midst of its first file left is no run.
            if any(not file.name.endswith(".part") for file in path.iterdir()):
                raise UserError(
                    f"The output folder {path} is not empty, and nothing in it will be "
                    f"overwritten: choose another --out, or `equistein resume {path}` "
                    "if it is an unfinished run."
                )
            probe = path / ".probe.part"
            probe.touch()
            probe.unlink()
        except (OSError, ValueError) as error:
            raise UserError(
                f"Cannot write to the output folder {path}: {error}. Choose another "
                "--out."
            ) from None
        return cls(path)

    @classmethod
    def open(cls, path: pathlib.Path) -> "RunFolder":
        """Open a folder that a run made.

        Raises:
            UserError: If it is not one.
        """
        if not (path / "config.json").is_file():
            raise UserError(
                f"{path} is not a run folder: it has no config.json. Give the folder "
                "that `equistein run` or `equistein fit` printed."
            )
        return cls(path)

    def write_config(self, described: Mapping[str, Any]) -> None:
        """Write config.json: what was run, with the version of its format."""
        self.write_json("config.json", {"version": VERSION, **described})

    def read_config(self) -> dict[str, Any]:
        """Return what config.json describes, one of an older version as of this one.

        Raises:
            UserError: If it is missing, damaged, or of a version that is not known.
        """
        try:
            return migrated(self.read_json("config.json"))
        except ValueError as error:
            raise UserError(f"{self.path / 'config.json'}: {error}.") from None

    def read_json(self, name: str) -> dict[str, Any]:
        """Return the object in a JSON file of the run.

        Raises:
            UserError: If the file is missing or damaged.
        """
        path = self.path / name
        try:
            value = json.loads(path.read_text())
        except (OSError, ValueError) as error:
            raise UserError(f"Cannot read {path}: {error}.") from None
        if not isinstance(value, dict):
            raise UserError(f"{path} should hold a JSON object.")
        return value

    def write_json(self, name: str, value: Any) -> None:
        """Write a JSON file, in which every number is finite."""
        self.write(name, json.dumps(value, indent=1, allow_nan=False) + "\n")

    def write(self, name: str, content: str | bytes) -> None:
        """Write a file, whole or not at all."""
        data = content.encode() if isinstance(content, str) else content
        write_whole(self.path / name, data)

    def write_arrays(self, name: str, arrays: Mapping[str, np.ndarray]) -> None:
        """Write arrays by name into an .npz file."""
        content = io.BytesIO()
        plain: dict[str, Any] = {k: np.asarray(value) for k, value in arrays.items()}
        np.savez(content, allow_pickle=False, **plain)
        self.write(name, content.getvalue())

    def read_arrays(self, name: str) -> dict[str, np.ndarray]:
        """Return the arrays of an .npz file.

        Raises:
            UserError: If the file is missing or damaged.
        """
        path = self.path / name
        try:
            with open(path, "rb") as file, np.load(file, allow_pickle=False) as stored:
                return dict(stored)
        except Exception as error:  # a damaged file can raise nearly anything
            raise UserError(
                f"Cannot read {path}: {error}. If it is damaged, delete it and resume."
            ) from None
