"""What annotations say of values: whether one is such a value, and in words."""

import collections.abc
import inspect
import types
import typing
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import AbstractArray

from equistein._numbers import is_integer, is_number

Sizes = dict[str, Any]
"""The sizes of named axes, which all arguments share."""

_SEQUENCES = (
    collections.abc.Sequence, collections.abc.Iterable, collections.abc.Collection,
    tuple, list,
)  # fmt: skip


def conforms(value: Any, hint: Any, sizes: Sizes) -> bool:
    """Whether a value is what a hint says, as far as that can be told."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint is None or hint is type(None):
        return value is None
    if origin in (typing.Union, types.UnionType):
        return any(conforms(value, each, sizes) for each in arguments)
    if origin is typing.Literal:
        return value in arguments
    if origin is typing.Annotated:
        return conforms(value, arguments[0], sizes)
    if inspect.isclass(hint) and issubclass(hint, AbstractArray):
        return _is_such_array(value, hint, sizes)
    if origin is not None and inspect.isclass(origin):
        return _is_such_container(value, origin, arguments, sizes)
    if not inspect.isclass(hint) or hint is Any:
        return True
    if hint is bool:
        return isinstance(value, bool | np.bool_)
    if hint is int:
        return is_integer(value)
    if hint is float:
        return is_number(value) or _is_scalar(value, "iuf")
    return isinstance(value, hint)


def _is_scalar(value: Any, kinds: str) -> bool:
    """Whether a value is an array without axes, traced or not, of some kinds."""
    is_array = isinstance(value, jax.Array | np.ndarray) and value.shape == ()
    return is_array and value.dtype.kind in kinds


def _is_such_container(
    value: Any, origin: type, arguments: tuple[Any, ...], sizes: Sizes
) -> bool:
    if origin is collections.abc.Callable:
        return callable(value) and _takes(value, arguments)
    if origin in _SEQUENCES:
        if isinstance(value, str):  # of letters, if those will do
            return arguments[:1] in ((str,), (collections.abc.Hashable,))
        if isinstance(value, jax.Array | np.ndarray):
            if value.ndim == 0 or origin is tuple:
                return False
        elif not isinstance(value, list | tuple | range):
            return isinstance(value, origin)
        if origin is tuple and Ellipsis not in arguments:
            return len(value) == len(arguments) and all(
                conforms(each, hint, sizes)
                for each, hint in zip(value, arguments, strict=True)
            )
        return all(conforms(each, arguments[0], sizes) for each in value)
    return isinstance(value, origin)


def _takes(function: Callable[..., Any], arguments: tuple[Any, ...]) -> bool:
    """Whether a function takes as many arguments as a hint says."""
    if not arguments or not isinstance(arguments[0], list):
        return True
    try:
        inspect.signature(function).bind(*arguments[0])
    except TypeError:
        return False
    except ValueError:  # of some that are not written in Python
        return True
    return True


def _is_such_array(value: Any, hint: Any, sizes: Sizes) -> bool:
    """Whether a value is an array with the axes and the kind of a hint."""
    dtype = getattr(value, "dtype", None)
    if dtype is not None and jnp.issubdtype(dtype, jax.dtypes.prng_key):
        return "key" in "".join(map(str, hint.dtypes))
    if not isinstance(value, jax.Array | np.ndarray | np.generic):
        return False
    allowed = "".join(map(str, hint.dtypes))
    kinds = {"f": "float", "i": "int", "u": "uint", "b": "bool", "c": "complex"}
    if hint.dtypes and kinds.get(value.dtype.kind, "?") not in allowed:
        return jnp.issubdtype(value.dtype, jnp.floating) and "float" in allowed
    return _shape_fits(value.shape, hint.dim_str.split(), sizes)


def _shape_fits(shape: tuple[int, ...], axes: list[str], sizes: Sizes) -> bool:
    """Whether a shape has the named axes, and they the sizes they had before."""
    several = [i for i, axis in enumerate(axes) if axis.startswith(("*", "..."))]
    if not several:
        if len(shape) != len(axes):
            return False
        pairs = list(zip(axes, shape, strict=True))
    else:
        at, after = several[0], len(axes) - several[0] - 1
        if len(shape) < len(axes) - 1:
            return False
        rest = len(shape) - after
        pairs = list(zip(axes[:at], shape[:at], strict=True))
        pairs += [(axes[at], shape[at:rest])]
        pairs += list(zip(axes[at + 1 :], shape[rest:], strict=True))
    found: Sizes = {}
    for axis, size in pairs:
        if axis.isdecimal() and int(axis) != size:
            return False
        if axis.removeprefix("*").isidentifier() and axis.removeprefix("*") != "_":
            if sizes.get(axis, size) != size:
                return False
            found[axis] = size
    sizes |= found
    return True


def in_words(hint: Any, sizes: Sizes) -> str:
    """Return what a hint asks for."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint is None or hint is type(None):
        return "None"
    if origin in (typing.Union, types.UnionType):
        return " or ".join(dict.fromkeys(in_words(each, sizes) for each in arguments))
    if origin is typing.Literal:
        return "one of " + ", ".join(map(repr, arguments))
    if inspect.isclass(hint) and issubclass(hint, AbstractArray):
        known = ", ".join(f"{axis} {size}" for axis, size in sizes.items())
        kind = (
            "integers" if "float" not in "".join(map(str, hint.dtypes)) else "numbers"
        )
        axes = hint.dim_str.replace(" ", ", ")
        return f"an array of {kind} ({axes})" + (f" with {known}" if known else "")
    if origin is collections.abc.Callable:
        wanted = arguments[0] if arguments and isinstance(arguments[0], list) else ()
        return f"a function of {len(wanted)} arguments" if wanted else "a function"
    if origin is not None and inspect.isclass(origin):
        inner = [in_words(each, sizes) for each in arguments if each is not Ellipsis]
        if len(inner) == 1:
            inner = [f"{inner[0].removeprefix('an ').removeprefix('a ')}s"]
        return f"a {origin.__name__.lower()} of {', '.join(inner)}"
    words = {
        int: "an integer", float: "a number", bool: "True or False", str: "a text",
        collections.abc.Hashable: "a label",
    }  # fmt: skip
    name = getattr(hint, "__name__", str(hint))
    if name.startswith("Abstract"):
        return f"a {name.removeprefix('Abstract')} (a subclass of `{name}`)"
    return words.get(hint, f"a {name}")
