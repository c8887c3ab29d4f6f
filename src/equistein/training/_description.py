"""What tells one fit from another: its parts, as JSON."""

import functools
import hashlib
from typing import Any

import equinox as eqx
import jax
import numpy as np

_ROWS = 2**16  # of an array are looked at together, which may be on disk


def described(part: Any, within: tuple[int, ...] = ()) -> Any:
    """Return what tells a part of a fit from others, as JSON.

    Of an array the shape, the type and a digest; of a module the name of its class and
    its fields; of a function its name, the numbers in it and what it encloses. `within`
    are the identities of what holds it, as functions may hold themselves.
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
    return {type(part).__name__: _inside(part, within)}


def fingerprint(values: Any) -> list:
    """Return what tells an array from others."""
    values = values if isinstance(values, np.memmap) else np.asarray(values)
    digest, rows = hashlib.sha256(), values.reshape(values.shape or 1)
    for start in range(0, len(rows), _ROWS):
        digest.update(rows[start : start + _ROWS].tobytes())
    return [*values.shape, str(values.dtype), digest.hexdigest()]


def _inside(part: Any, within: tuple[int, ...]) -> Any:
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
    cells = getattr(part, "__closure__", None) or ()
    held = [*(getattr(part, "__defaults__", None) or ()), *map(_content, cells)]
    return [name, *_numbers(part), *(described(each, within) for each in held)]


def _numbers(function: Any) -> list[int | float]:
    """Return the numbers that stand in a function."""
    constants = getattr(getattr(function, "__code__", None), "co_consts", ())
    return [each for each in constants if isinstance(each, int | float)]


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return None
