"""Checkpoints: the arrays of a training state behind a line of JSON."""

import concurrent.futures
import hashlib
import io
import json
import pathlib
from typing import Any

import equinox as eqx
import jax

from equistein._files import write_whole

FORMAT = 4
_HEADER = 2**22  # bytes of a header, and of what stands before arrays, at most


class CheckpointError(ValueError):
    """A file is not a checkpoint, is damaged, or belongs to other settings."""


def save_checkpoint(path: pathlib.Path, state: Any, header: dict[str, Any]) -> None:
    """Write the arrays of a training state, behind a header that tells what it fits."""
    payload = io.BytesIO()
    eqx.tree_serialise_leaves(payload, state)
    arrays = payload.getvalue()
    line = {"format": FORMAT, "sha256": hashlib.sha256(arrays).hexdigest(), **header}
    write_whole(path, json.dumps(line).encode() + b"\n" + arrays)


class CheckpointWriter:
    """Writes checkpoints one after another, while the fit goes on."""

    def __init__(self):
        self._thread = concurrent.futures.ThreadPoolExecutor(1)
        self._pending: concurrent.futures.Future | None = None

    def write(self, path: pathlib.Path, state: Any, header: dict[str, Any]) -> None:
        """Begin to write a state, none of whose arrays may be changed any more.

        Raises:
            OSError: If the one before could not be written.
        """
        self.finish()
        self._pending = self._thread.submit(save_checkpoint, path, state, header)

    def finish(self) -> None:
        """Wait until what was given is on disk.

        Raises:
            OSError: If it cannot be written.
        """
        pending, self._pending = self._pending, None
        if pending is not None:
            pending.result()


def load_checkpoint(path: pathlib.Path, like: Any, header: dict[str, Any]) -> Any:
    """Return the state in a file, which has the structure of `like` and this header.

    Raises:
        CheckpointError: If the file does not fit or is damaged.
    """
    held = sum(leaf.nbytes for leaf in jax.tree.leaves(like) if hasattr(leaf, "nbytes"))
    size = path.stat().st_size
    if size > 2 * held + _HEADER:
        raise CheckpointError(
            f"{path} has {size} bytes, and the state that it is read for {held}: it is "
            "another's, or damaged, and is not read. Choose another file."
        )
    with open(path, "rb") as file:
        try:
            found = json.loads(file.readline(1_000_000))
        except (RecursionError, ValueError):
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
