"""Checkpoints: the arrays of a training state behind a line of JSON."""

import json
import os
import pathlib
from typing import Any

import equinox as eqx

FORMAT = 1


class CheckpointError(ValueError):
    """A file is not a checkpoint, is damaged, or belongs to other settings."""


def save_checkpoint(path: pathlib.Path, state: Any, header: dict[str, Any]) -> None:
    """Write a training state under a temporary name and rename it into place.

    Args:
        path: The file.
        state: A pytree; its arrays are written.
        header: What tells whether the file fits, as a JSON object.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.part")
    with open(temporary, "wb") as file:
        file.write(json.dumps({"format": FORMAT, **header}).encode() + b"\n")
        eqx.tree_serialise_leaves(file, state)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)


def load_checkpoint(path: pathlib.Path, like: Any, header: dict[str, Any]) -> Any:
    """Return the state in a file, if it was written with the same header.

    Args:
        path: The file.
        like: A state of the same structure, whose arrays are replaced.
        header: What the file's header must be.

    Raises:
        CheckpointError: If the file does not fit or is damaged.
    """
    with open(path, "rb") as file:
        try:
            found = json.loads(file.readline(1_000_000))
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise CheckpointError(f"{path} is not a checkpoint of equistein.")
        expected = {"format": FORMAT, **json.loads(json.dumps(header))}
        if found != expected:
            odd = [
                key
                for key in sorted(set(expected) | set(found))
                if expected.get(key) != found.get(key)
            ]
            raise CheckpointError(
                f"{path} was written with other settings ({', '.join(odd)}): resume "
                "with the settings it was started with, or choose another folder."
            )
        try:
            return eqx.tree_deserialise_leaves(file, like)
        except Exception as error:
            raise CheckpointError(
                f"{path} is damaged or of another version ({type(error).__name__}). "
                "Delete it and resume the run."
            ) from None
