"""Equal optimizers as one object, so that each is compiled once.

Optax makes an optimizer of new functions at each call, and JAX compiles again for a
new function.
"""

import types
from collections.abc import Hashable
from typing import Any

import jax
import numpy as np
import optax
from jax.core import Tracer

_LIBRARIES = ("optax", "equistein", "jax")  # their functions read no changing variables
_MOST = 256  # optimizers in the cache
_cache: dict[Hashable, optax.GradientTransformation] = {}


def canonical_optimizer(
    optimizer: optax.GradientTransformation,
) -> optax.GradientTransformation:
    """Return the first optimizer that was made with the same code and numbers.

    A custom part, such as a schedule, equals only itself: it may read variables that
    change.
    """
    try:
        key = _key(optimizer)
    except (RecursionError, TypeError, ValueError):  # a part that has no such key
        return optimizer
    if key not in _cache and len(_cache) >= _MOST:
        _cache.pop(next(iter(_cache)))
    return _cache.setdefault(key, optimizer)


def _key(value: Any) -> Hashable:
    """Return a key that two values share only if JAX would compile the same code."""
    if value is None or isinstance(value, bool | int | float | complex | str):
        return type(value), repr(value)  # 1 == 1.0 == True, and 0.0 == -0.0
    if isinstance(value, np.generic):
        return type(value), value.tobytes()
    if isinstance(value, jax.Array) and not isinstance(value, Tracer):
        numbers = np.asarray(value)
        return numbers.dtype, numbers.shape, value.weak_type, numbers.tobytes()
    if isinstance(value, tuple):
        return type(value), *map(_key, value)
    if isinstance(value, types.FunctionType) and _of_a_library(value):
        cells = [cell.cell_contents for cell in value.__closure__ or ()]
        defaults = value.__defaults__, *sorted((value.__kwdefaults__ or {}).items())
        return value.__module__, value.__code__, _key(defaults), *map(_key, cells)
    return type(value), id(value)


def _of_a_library(function: types.FunctionType) -> bool:
    return function.__module__.partition(".")[0] in _LIBRARIES
