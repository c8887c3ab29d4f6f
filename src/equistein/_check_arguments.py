"""The public boundary: arguments are checked once, against their annotations."""

import collections.abc
import dataclasses
import functools
import inspect
import re
import types
import typing
from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
from jax.core import Tracer

from equistein._arrays import as_keys
from equistein._numbers import is_integer, is_number, MOST

Public = TypeVar("Public", bound=Callable[..., Any])

_RANDOM = ("key", "seed")  # which may be any number
_SEQUENCES = (
    collections.abc.Sequence, collections.abc.Iterable, collections.abc.Collection,
    tuple, list,
)  # fmt: skip
_KINDS = {"f": "float", "i": "int", "u": "uint", "b": "bool", "c": "complex"}
_PHRASES = {
    int: "an integer", float: "a number", bool: "True or False", str: "a string",
    type(None): "None",
}  # fmt: skip


def check_arguments(
    public: Public, *, checked: bool = True, finite: bool = False
) -> Public:
    """Check the arguments of a function, or of a class, against their annotations.

    Values may be more general than the annotation, as NumPy's numbers and arrays are.
    Arrays are checked for the number of their axes, the sizes that they share by name,
    and their kind of numbers; the numbers of traced arrays are not known. An integer n
    may be the `key`: it is `jax.random.key(n)`. The function itself checks what an
    annotation cannot express, such as a range. With `finite`, floating-point arrays
    must be finite; without `checked`, only the key is looked at.
    """
    is_class = isinstance(public, type)
    function: Any = public.__init__ if is_class else public
    name, signature = public.__name__, inspect.signature(function)

    @functools.cache
    def hints() -> dict[str, Any]:
        own = _hints(inspect.unwrap(function))
        own = {name: hint for name, hint in own.items() if hint is not Any}
        if not dataclasses.is_dataclass(public):
            return own
        # The annotation of a converter is less specific than that of its field.
        fields, of_class = dataclasses.fields(public), _hints(public)
        converted = {f.name for f in fields if "converter" in f.metadata}
        return {k: of_class[k] for k in converted & of_class.keys()} | own

    @functools.wraps(function)
    def checked_call(*arguments: Any, **named: Any) -> Any:
        try:
            bound = signature.bind(*arguments, **named)
        except TypeError as error:
            raise TypeError(f"`{name}`: {error}.") from None
        values = bound.arguments
        if "key" in values and values["key"] is not signature.parameters["key"].default:
            values["key"] = as_keys(values["key"])
        if checked:
            # jaxtyping remembers the sizes of named axes inside its context.
            with jaxtyping.jaxtyped("context"):  # type: ignore[call-overload]
                _check_all(name, values, signature, hints(), finite)
        return function(*bound.args, **bound.kwargs)

    if not is_class:
        return checked_call  # type: ignore[return-value]
    setattr(public, "__init__", checked_call)  # noqa: B010
    return public  # type: ignore[return-value]


check_finite_arguments = functools.partial(check_arguments, finite=True)
"""The same, where arrays of numbers must be finite as well."""

accept_integer_key = functools.partial(check_arguments, checked=False)
"""Turn an integer `key` into a key and check nothing else: for methods under jit."""


def _hints(public: Any) -> dict[str, Any]:
    hints = typing.get_type_hints(public)
    return {name: hint for name, hint in hints.items() if name != "return"}


def _check_all(
    owner: str, values: dict[str, Any], signature: inspect.Signature,
    hints: dict[str, Any], finite: bool,
) -> None:  # fmt: skip
    """Raise `ValueError` for the first argument that does not fit."""
    shapes = ""  # of the arguments before
    for argument, value in values.items():
        if np.ma.is_masked(value):
            raise ValueError(f"`{owner}` needs `{argument}` without masked numbers.")
        kind, hint = signature.parameters[argument].kind, hints.get(argument)
        if hint is None or kind is inspect.Parameter.VAR_KEYWORD:
            continue
        parts = [(argument, value)]
        if kind is inspect.Parameter.VAR_POSITIONAL:
            parts = [(f"{argument}[{i}]", each) for i, each in enumerate(value)]
        for name, each in parts:
            needs = f"`{owner}` needs `{name}`"
            if is_integer(each) and each > MOST and name not in _RANDOM:
                raise ValueError(
                    f"{needs} of at most {MOST:.0e}, but got {each}: split the work."
                )
            is_array = isinstance(each, jax.Array | np.ndarray) and name != "key"
            if not _conforms(each, hint):
                raise ValueError(
                    f"{needs}, {_phrase(hint)}, but got {_describe(each)}"
                    f"{shapes if is_array else ''}."
                )
            if is_array:
                shapes += f", with `{name}` of shape {each.shape}"
            if is_array and finite:
                _check_finite(needs, each)


def _check_finite(needs: str, value: jax.Array | np.ndarray) -> None:
    if value.size == 0:
        raise ValueError(f"{needs} with at least one entry.")
    if isinstance(value, Tracer) or not jnp.issubdtype(value.dtype, jnp.floating):
        return
    bad = int(np.sum(~np.isfinite(value)))
    if bad:
        raise ValueError(
            f"{needs} to be finite, but {bad} of {value.size} numbers are not."
        )


def _conforms(value: Any, hint: Any) -> bool:
    """Whether a value fits an annotation, as far as that can be decided."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint in (None, type(None)):
        return value is None
    if origin in (typing.Union, types.UnionType):
        return any(_conforms(value, each) for each in arguments)
    if origin is typing.Literal:
        return value in arguments
    if origin is collections.abc.Callable:
        return callable(value)
    if inspect.isclass(origin):
        return _is_such_container(value, origin, arguments)
    if not inspect.isclass(hint) or hint is Any:
        return True
    if issubclass(hint, jaxtyping.AbstractArray):
        return _is_such_array(value, hint)
    if hint is bool:
        return isinstance(value, bool | np.bool_)
    if hint is int:
        return is_integer(value)
    if hint is float:
        return is_number(value)
    return isinstance(value, hint)


def _is_such_container(value: Any, origin: type, arguments: tuple[Any, ...]) -> bool:
    if isinstance(value, str):  # a sequence of letters
        return arguments[:1] in ((str,), (collections.abc.Hashable,))
    rows = list | tuple | range  # a list may be given for a tuple
    if origin is not tuple:
        rows = rows | jax.Array | np.ndarray
    is_scalar = getattr(value, "ndim", 1) == 0
    if origin not in _SEQUENCES or not isinstance(value, rows) or is_scalar:
        return isinstance(value, origin)
    if origin is tuple and Ellipsis not in arguments:
        return len(value) == len(arguments) and all(map(_conforms, value, arguments))
    return all(_conforms(each, arguments[0]) for each in value)


def _is_such_array(value: Any, hint: Any) -> bool:
    """Whether a value is an array with the axes and the kind of an annotation."""
    allowed = "".join(map(str, hint.dtypes))
    dtype = getattr(value, "dtype", None)
    if dtype is not None and jnp.issubdtype(dtype, jax.dtypes.prng_key):
        return "key" in allowed
    if not isinstance(value, jax.Array | np.ndarray | np.generic):
        return False
    if _KINDS.get(value.dtype.kind, "?") not in allowed:
        # The kind of bfloat16 is not NumPy's.
        if not (jnp.issubdtype(value.dtype, jnp.floating) and "float" in allowed):
            return False
    shaped: Any = jaxtyping.Shaped[Any, hint.dim_str]
    return isinstance(value, shaped)


def _phrase(hint: Any) -> str:
    """Return what an annotation asks for."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return " or ".join(dict.fromkeys(map(_phrase, typing.get_args(hint))))
    if inspect.isclass(hint) and issubclass(hint, jaxtyping.AbstractArray):
        is_float = "float" in "".join(map(str, hint.dtypes))
        axes = hint.dim_str.replace(" ", ", ")
        return f"an array of {'numbers' if is_float else 'integers'} ({axes})"
    if inspect.isclass(hint) and not typing.get_args(hint):
        return _PHRASES.get(hint, f"a {hint.__name__.removeprefix('Abstract')}")
    return re.sub(r"\b\w+\.", "", str(hint))  # in Python's notation


def _describe(value: Any) -> str:
    """Return what a value is, shortened."""
    if isinstance(value, jax.Array | np.ndarray):
        return f"an array of shape {value.shape} and type {value.dtype}"
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
