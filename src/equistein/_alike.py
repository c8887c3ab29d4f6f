"""One object for all optimizers that were made alike, so that each is compiled once.

Optax makes an optimizer of new functions at each call, and to JAX a new function is
something new to compile.
"""

import types
from collections.abc import Hashable
from typing import Any

import jax
import numpy as np
import optax
from jax.core import Tracer

_LIBRARIES = ("optax", "equistein", "jax")  # what their functions read never changes
_MOST = 256  # optimizers that are remembered
_known: dict[Hashable, optax.GradientTransformation] = {}


def one_of_alike(
    optimizer: optax.GradientTransformation,
) -> optax.GradientTransformation:
    """Return the first optimizer that was made with the same code and numbers.

    What a user wrote, such as a schedule, is like itself alone: it may read variables
    that change.
    """
    try:
        key = _key(optimizer)
    except (RecursionError, TypeError, ValueError):  # a part that tells nothing
        return optimizer
    if key not in _known and len(_known) >= _MOST:
        _known.pop(next(iter(_known)))
    return _known.setdefault(key, optimizer)


def _key(value: Any) -> Hashable:
    """Return what two values share only if JAX would compile the same from them."""
    if value is None or isinstance(value, bool | int | float | complex | str):
        return type(value), repr(value)  # 1 == 1.0 == True, and 0.0 == -0.0
    if isinstance(value, np.generic):
        return type(value), value.tobytes()
    if isinstance(value, jax.Array) and not isinstance(value, Tracer):
        numbers = np.asarray(value)
        weak = value.weak_type
        return numbers.dtype, numbers.shape, weak, numbers.tobytes()
    if isinstance(value, tuple):
        return type(value), *map(_key, value)
    if isinstance(value, types.FunctionType) and _of_a_library(value):
        cells = [cell.cell_contents for cell in value.__closure__ or ()]
        given = value.__defaults__, *sorted((value.__kwdefaults__ or {}).items())
        return value.__module__, value.__code__, _key(given), *map(_key, cells)
    return type(value), id(value)


def _of_a_library(function: types.FunctionType) -> bool:
    return function.__module__.partition(".")[0] in _LIBRARIES
