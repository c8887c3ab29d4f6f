"""Checkpoints: the arrays of a training state behind a line of JSON."""

import hashlib
import io
import json
import pathlib
from typing import Any

import equinox as eqx

from equistein._files import write_whole

FORMAT = 3


class CheckpointError(ValueError):
    """A file is not a checkpoint, is damaged, or belongs to other settings."""


def save_checkpoint(path: pathlib.Path, state: Any, header: dict[str, Any]) -> None:
    """Write the arrays of a training state, behind a header that tells what it fits."""
    payload = io.BytesIO()
    eqx.tree_serialise_leaves(payload, state)
    arrays = payload.getvalue()
    line = {"format": FORMAT, "sha256": hashlib.sha256(arrays).hexdigest(), **header}
    write_whole(path, json.dumps(line).encode() + b"\n" + arrays)


def load_checkpoint(path: pathlib.Path, like: Any, header: dict[str, Any]) -> Any:
    """Return the state in a file, which has the structure of `like` and this header.

    Raises:
        CheckpointError: If the file does not fit or is damaged.
    """
    with open(path, "rb") as file:
        try:
            found = json.loads(file.readline(1_000_000))
        except ValueError:
            found = None
        arrays = file.read()
    if not isinstance(found, dict) or "format" not in found:
        raise CheckpointError(f"{path} is not a checkpoint of equistein.")
    if found.pop("format") != FORMAT:
        raise CheckpointError(
            f"{path} was written by another version of equistein, in another format "
            f"than {FORMAT}: go on with that version, or start a new run."
        )
    digest = found.pop("sha256", None)
    expected = json.loads(json.dumps(header))
    if found != expected:
        odd = [
            key
            for key in sorted(set(expected) | set(found))
            if expected.get(key) != found.get(key)
        ]
        raise CheckpointError(
            f"{path} was written with other settings ({', '.join(odd)}): resume with "
            "the settings it was started with, or choose another folder."
        )
    if hashlib.sha256(arrays).hexdigest() != digest:
        raise CheckpointError(
            f"{path} is damaged: its content does not match its checksum. Delete it, "
            "and the run starts from its beginning."
        )
    try:
        return eqx.tree_deserialise_leaves(io.BytesIO(arrays), like)
    except Exception as error:
        raise CheckpointError(
            f"{path} does not fit the energy that is trained "
            f"({type(error).__name__}): resume with the same energy."
        ) from None
