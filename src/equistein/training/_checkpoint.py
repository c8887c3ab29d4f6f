"""Checkpoints: the state and history of a fit, with the fingerprint of its parts."""

import functools
import hashlib
import json
import pathlib
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from equistein._serialization import load_arrays, save_arrays

_KIND, _COLUMN = "checkpoint", "history/"
_CHUNK = 2**24  # numbers of an array that are hashed together; it may be on disk
History = dict[str, list[float]]


class CheckpointError(ValueError):
    """A file is not a checkpoint, is damaged, or belongs to other settings."""


def save_checkpoint(
    path: pathlib.Path, states: Any, fingerprint: dict, history: History,
    events: list[dict],
) -> None:  # fmt: skip
    """Write the arrays of the states, with history, fingerprint and events."""
    leaves = filter(_is_array, jax.tree.leaves(states))
    arrays = {str(i): np.asarray(leaf) for i, leaf in enumerate(leaves)}
    arrays |= {_COLUMN + name: np.array(column) for name, column in history.items()}
    save_arrays(path, _KIND, {"fit": fingerprint, "events": events}, arrays)


def load_checkpoint(
    path: pathlib.Path, like: Any, fingerprint: dict
) -> tuple[Any, History, list[dict]]:
    """Return states, history and events in a file, or raise `CheckpointError`."""
    remedy = "delete it, and the fit starts from its beginning"
    try:
        stored, arrays = load_arrays(path, _KIND, remedy)
    except ValueError as error:
        raise CheckpointError(str(error)) from None
    expected, fit = json.loads(json.dumps(fingerprint)), stored.get("fit", {})
    if fit != expected:
        names = sorted({*expected, *fit})
        different = [n for n in names if expected.get(n) != fit.get(n)]
        raise CheckpointError(
            f"{path} was written with other settings ({', '.join(different)}): resume "
            "with the settings it was started with, or choose another file."
        )
    columns = [name for name in arrays if name.startswith(_COLUMN)]
    history = {n.removeprefix(_COLUMN): arrays.pop(n).tolist() for n in columns}
    like_arrays, rest = eqx.partition(like, _is_array)
    leaves, structure = jax.tree.flatten(like_arrays)
    found = [np.asarray(arrays.get(str(i))) for i in range(len(arrays))]
    form = lambda leaf: (leaf.shape, leaf.dtype)
    if list(map(form, found)) != list(map(form, leaves)):
        raise CheckpointError(
            f"{path} holds arrays of other shapes or types than this fit: resume with "
            "the version of equistein that wrote it, or delete it."
        )
    restored = [
        array if isinstance(leaf, np.ndarray) else jnp.asarray(array)
        for array, leaf in zip(found, leaves, strict=True)
    ]
    state = eqx.combine(jax.tree.unflatten(structure, restored), rest)
    return state, history, stored["events"]


def _is_array(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array | np.ndarray)


def identify(part: Any, within: tuple[int, ...] = ()) -> Any:
    """Return JSON that identifies a part of a fit, to be compared on resume.

    For a function its name, its constants and what it encloses. `within` holds the
    identities of the parts around it, since functions may contain themselves.
    """
    if part is None or isinstance(part, bool | int | float | str):
        return part if part == part else "nan"
    if isinstance(part, jax.Array | np.ndarray | np.generic):
        return _digest(part)
    if id(part) in within:
        return type(part).__name__
    within = (*within, id(part))
    if isinstance(part, dict):
        return {str(key): identify(value, within) for key, value in part.items()}
    if isinstance(part, list | tuple) and not hasattr(part, "_fields"):
        return [identify(value, within) for value in part]
    return {type(part).__name__: _content(part, within)}


def _digest(values: Any) -> list:
    values = values if isinstance(values, np.memmap) else np.asarray(values)
    digest, rows = hashlib.sha256(), values.reshape(values.shape or 1)
    num = max(1, _CHUNK // max(1, rows[:1].size))
    for start in range(0, len(rows), num):
        digest.update(rows[start : start + num].tobytes())
    return [*values.shape, str(values.dtype), digest.hexdigest()]


def _content(part: Any, within: tuple[int, ...]) -> Any:
    if isinstance(part, tuple):  # a named one
        return identify(list(part), within)
    if isinstance(part, eqx.Module):
        return identify(dict(vars(part)), within)
    if isinstance(part, functools.partial):
        return identify([part.func, part.args, part.keywords], within)
    name = getattr(part, "__qualname__", None)
    if name is None:
        return repr(type(part))
    part = getattr(part, "__wrapped__", part)
    constants = getattr(getattr(part, "__code__", None), "co_consts", ())
    numbers = [each for each in constants if isinstance(each, int | float)]
    cells = getattr(part, "__closure__", None) or ()
    inner = [*(getattr(part, "__defaults__", None) or ()), *map(_cell_content, cells)]
    return [name, *numbers, *(identify(each, within) for each in inner)]


def _cell_content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return None
