"""Fingerprint of a fit, as JSON, compared on resume."""

import functools
import hashlib
from typing import Any

import equinox as eqx
import jax
import numpy as np

_ROWS = 2**16  # of an array that are hashed together; it may be on disk


def described(part: Any, within: tuple[int, ...] = ()) -> Any:
    """Return JSON that differs for parts of a fit that differ.

    For an array the shape, the type and a digest; for a module the name of its class
    and its fields; for a function its name, its constants and what it encloses.
    `within` holds the identities of the parts around it, since functions may contain
    themselves.
    """
    if part is None or isinstance(part, bool | int | float | str):
        return part if part == part else "nan"
    if isinstance(part, jax.Array | np.ndarray | np.generic):
        return fingerprint(part)
    if id(part) in within:
        return type(part).__name__
    within = (*within, id(part))
    if isinstance(part, dict):
        return {str(key): described(value, within) for key, value in part.items()}
    if isinstance(part, list | tuple) and not hasattr(part, "_fields"):
        return [described(value, within) for value in part]
    return {type(part).__name__: _content(part, within)}


def fingerprint(values: Any) -> list:
    """Return the shape, the type and a digest of an array."""
    values = values if isinstance(values, np.memmap) else np.asarray(values)
    digest, rows = hashlib.sha256(), values.reshape(values.shape or 1)
    for start in range(0, len(rows), _ROWS):
        digest.update(rows[start : start + _ROWS].tobytes())
    return [*values.shape, str(values.dtype), digest.hexdigest()]


def _content(part: Any, within: tuple[int, ...]) -> Any:
    if isinstance(part, tuple):  # a named one
        return [described(value, within) for value in part]
    if isinstance(part, eqx.Module):
        return {name: described(value, within) for name, value in vars(part).items()}
    if isinstance(part, functools.partial):
        return described([part.func, part.args, part.keywords], within)
    name = getattr(part, "__qualname__", None)
    if name is None:
        return repr(type(part))
    part = getattr(part, "__wrapped__", part)
    constants = getattr(getattr(part, "__code__", None), "co_consts", ())
    numbers = [each for each in constants if isinstance(each, int | float)]
    cells = getattr(part, "__closure__", None) or ()
    inner = [*(getattr(part, "__defaults__", None) or ()), *map(_cell_content, cells)]
    return [name, *numbers, *(described(each, within) for each in inner)]


def _cell_content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return None
