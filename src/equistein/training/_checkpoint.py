"""Checkpoints: the arrays of a training state, and the fingerprint of its fit."""

import concurrent.futures
import json
import pathlib
from typing import Any

import jax
import numpy as np

from equistein._serialization import load_arrays, save_arrays

_KIND = "checkpoint"


class CheckpointError(ValueError):
    """A file is not a checkpoint, is damaged, or belongs to other settings."""


def save_checkpoint(path: pathlib.Path, state: Any, header: dict[str, Any]) -> None:
    """Write the arrays of a training state with the fingerprint of its fit."""
    leaves = [leaf for leaf in jax.tree.leaves(state) if _is_array(leaf)]
    arrays = {str(i): np.asarray(leaf) for i, leaf in enumerate(leaves)}
    save_arrays(path, _KIND, header, arrays)


class CheckpointWriter:
    """Writes checkpoints one after another, while the fit continues."""

    def __init__(self):
        self._thread = concurrent.futures.ThreadPoolExecutor(1)
        self._pending: concurrent.futures.Future | None = None

    def write(self, path: pathlib.Path, state: Any, header: dict[str, Any]) -> None:
        """Begin to write a state, whose arrays must not be changed afterwards.

        Raises:
            OSError: If the one before could not be written.
        """
        self.finish()
        self._pending = self._thread.submit(save_checkpoint, path, state, header)

    def finish(self) -> None:
        """Wait until everything is on disk.

        Raises:
            OSError: If it cannot be written.
        """
        pending, self._pending = self._pending, None
        if pending is not None:
            pending.result()


def load_checkpoint(path: pathlib.Path, like: Any, header: dict[str, Any]) -> Any:
    """Return the state in a file, with the structure of `like` and this fingerprint.

    Raises:
        CheckpointError: If the file does not fit or is damaged.
    """
    remedy = "delete it, and the run starts from its beginning"
    try:
        stored, arrays = load_arrays(path, _KIND, remedy)
    except ValueError as error:
        raise CheckpointError(str(error)) from None
    expected = json.loads(json.dumps(header))
    if stored != expected:
        names = sorted(set(expected) | set(stored))
        different = [n for n in names if expected.get(n) != stored.get(n)]
        raise CheckpointError(
            f"{path} was written with other settings ({', '.join(different)}): resume "
            "with the settings it was started with, or choose another folder."
        )
    leaves, structure = jax.tree.flatten(like)
    rows = iter(range(len(arrays)))
    restored = [
        _restored(arrays.get(str(next(rows, None))), leaf) if _is_array(leaf) else leaf
        for leaf in leaves
    ]
    if any(leaf is None for leaf in restored) or next(rows, None) is not None:
        raise CheckpointError(
            f"{path} does not fit the energy that is trained: resume with the same "
            "energy."
        )
    return jax.tree.unflatten(structure, restored)


def _is_array(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array | np.ndarray)


def _restored(stored: np.ndarray | None, like: Any) -> Any:
    """Return the array of a file, or None if it is not like another."""
    if stored is None or (stored.shape, stored.dtype) != (like.shape, like.dtype):
        return None
    return stored if isinstance(like, np.ndarray) else jax.numpy.asarray(stored)
