"""What tells one fit from another: its parts, as JSON."""

import hashlib
from typing import Any

import equinox as eqx
import jax
import numpy as np

_DEPTH = 12


def described(part: Any, depth: int = _DEPTH) -> Any:
    """Return what tells a part of a fit from others, as JSON.

    Of an array the shape, the type and a digest; of a module the name of its class and
    its fields; of a function its name and what it encloses.
    """
    if part is None or isinstance(part, bool | int | float | str):
        return part if part == part else "nan"
    if depth == 0:
        return type(part).__name__
    if isinstance(part, jax.Array | np.ndarray | np.generic):
        return fingerprint(part)
    if isinstance(part, dict):
        return {str(key): described(value, depth - 1) for key, value in part.items()}
    if isinstance(part, list | tuple) and not hasattr(part, "_fields"):
        return [described(value, depth - 1) for value in part]
    return {type(part).__name__: _inside(part, depth - 1)}


def fingerprint(values: Any) -> list:
    """Return what tells an array from others."""
    values = np.asarray(values)
    digest = hashlib.sha256(values.tobytes()).hexdigest()
    return [*values.shape, str(values.dtype), digest]


def _inside(part: Any, depth: int) -> Any:
    if isinstance(part, tuple):  # a named one
        return [described(value, depth) for value in part]
    if isinstance(part, eqx.Module):
        return {name: described(value, depth) for name, value in vars(part).items()}
    name = getattr(part, "__qualname__", None)
    if name is None:
        return repr(type(part))
    cells = getattr(part, "__closure__", None) or ()
    return [name, *(described(_content(cell), depth) for cell in cells)]


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return None
