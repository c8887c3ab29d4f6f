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
import numpy as np
from jax.core import Tracer
from jaxtyping import AbstractArray

from equistein._arrays import as_keys
from equistein._limits import MOST, WHY_MOST
from equistein._numbers import is_integer, is_number

Gated = TypeVar("Gated", bound=Callable[..., Any])
Sizes = dict[str, int | tuple[int, ...]]
"""The sizes of named axes, which all arguments share."""

_RANDOM = ("key", "seed")  # which may be any number
_SEQUENCES = (
    collections.abc.Sequence, collections.abc.Iterable, collections.abc.Collection,
    tuple, list,
)  # fmt: skip
_KINDS = {"f": "float", "i": "int", "u": "uint", "b": "bool", "c": "complex"}
_PHRASES = {
    int: "an integer", np.integer: "an integer", float: "a number",
    bool: "True or False", str: "a string", type(None): "None",
}  # fmt: skip


def gate(public: Gated, *, finite: bool = False) -> Gated:
    """Check the arguments of a function, or of a class, against their annotations.

    Values may be more general than the annotation, as NumPy's numbers and arrays are.
    Arrays are checked for the number of their axes, the sizes that they share by name,
    and their kind of numbers; the numbers of traced arrays are not known. An integer
    may be the `key`. The function itself checks what an annotation cannot express, such
    as a range. With `finite`, floating-point arrays must be finite.

    Raises:
        ValueError: When called, with the argument, what was expected and what came.
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
    def gated(*arguments: Any, **named: Any) -> Any:
        try:
            bound = signature.bind(*arguments, **named)
        except TypeError as error:
            raise TypeError(f"`{name}`: {error}.") from None
        values = bound.arguments
        if "key" in values and values["key"] is not signature.parameters["key"].default:
            values["key"] = as_keys(values["key"])
        _check_all(name, values, signature, hints(), finite)
        return function(*bound.args, **bound.kwargs)

    if not is_class:
        return gated  # type: ignore[return-value]
    setattr(public, "__init__", gated)  # noqa: B010
    return public  # type: ignore[return-value]


finite_gate = functools.partial(gate, finite=True)
"""The same, where arrays of numbers must be finite as well."""


def keyed(public: Gated) -> Gated:
    """Let a function take an integer n as its `key`, which is `jax.random.key(n)`.

    Nothing else is checked, so that it may be used where steps are compiled.
    """
    place = list(inspect.signature(public).parameters).index("key")

    @functools.wraps(public)
    def with_key(*arguments: Any, **named: Any) -> Any:
        if "key" in named:
            named["key"] = as_keys(named["key"])
        elif len(arguments) > place:
            before, after = arguments[:place], arguments[place + 1 :]
            arguments = (*before, as_keys(arguments[place]), *after)
        return public(*arguments, **named)

    return with_key  # type: ignore[return-value]


def _hints(public: Any) -> dict[str, Any]:
    hints = typing.get_type_hints(public, include_extras=True)
    return {name: hint for name, hint in hints.items() if name != "return"}


def _check_all(
    owner: str,
    values: dict[str, Any],
    signature: inspect.Signature,
    hints: dict[str, Any],
    finite: bool,
) -> None:
    """Raise `ValueError` for the first argument that does not fit."""
    sizes: Sizes = {}
    for argument, value in values.items():
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
                    f"{needs} of at most {MOST:.0e}, but got {each}: {WHY_MOST}."
                )
            if not _conforms(each, hint, sizes):
                raise ValueError(
                    f"{needs}, {_phrase(hint, sizes)}, but got {_shown(each)}."
                )
            if finite and isinstance(each, jax.Array | np.ndarray):
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


def _conforms(value: Any, hint: Any, sizes: Sizes) -> bool:
    """Whether a value fits an annotation, as far as that can be decided."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint in (None, type(None)):
        return value is None
    if origin in (typing.Union, types.UnionType):
        return any(_conforms(value, each, sizes) for each in arguments)
    if origin is typing.Literal:
        return value in arguments
    if origin is typing.Annotated:
        return _conforms(value, arguments[0], sizes)
    if origin is not None and inspect.isclass(origin):
        return _is_such_container(value, origin, arguments, sizes)
    if not inspect.isclass(hint) or hint is Any:
        return True
    if issubclass(hint, AbstractArray):
        return _is_such_array(value, hint, sizes)
    if hint is bool:
        return isinstance(value, bool | np.bool_)
    if hint is int:
        return is_integer(value)
    if hint is float:
        is_scalar = isinstance(value, jax.Array) and value.shape == ()
        return is_number(value) or (is_scalar and value.dtype.kind in "iuf")
    return isinstance(value, hint)


def _is_such_container(
    value: Any, origin: type, arguments: tuple[Any, ...], sizes: Sizes
) -> bool:
    if origin is collections.abc.Callable:
        return callable(value) and _takes(value, arguments)
    if origin not in _SEQUENCES:
        return isinstance(value, origin)
    if isinstance(value, str):  # a sequence of letters
        return arguments[:1] in ((str,), (collections.abc.Hashable,))
    if isinstance(value, jax.Array | np.ndarray):
        if value.ndim == 0 or origin is tuple:
            return False
    elif not isinstance(value, list | tuple | range):
        return isinstance(value, origin)
    if origin is tuple and Ellipsis not in arguments:
        pairs = zip(value, arguments, strict=False)
        return len(value) == len(arguments) and all(
            _conforms(each, hint, sizes) for each, hint in pairs
        )
    return all(_conforms(each, arguments[0], sizes) for each in value)


def _takes(function: Callable[..., Any], arguments: tuple[Any, ...]) -> bool:
    """Whether a function takes as many arguments as an annotation says."""
    if not arguments or not isinstance(arguments[0], list):
        return True
    try:
        inspect.signature(function).bind(*arguments[0])
    except TypeError:
        return False
    except ValueError:  # functions that are not written in Python
        return True
    return True


def _is_such_array(value: Any, hint: Any, sizes: Sizes) -> bool:
    """Whether a value is an array with the axes and the kind of an annotation."""
    allowed = "".join(map(str, hint.dtypes))
    dtype = getattr(value, "dtype", None)
    if dtype is not None and jnp.issubdtype(dtype, jax.dtypes.prng_key):
        return "key" in allowed
    if not isinstance(value, jax.Array | np.ndarray | np.generic):
        return False
    if hint.dtypes and _KINDS.get(value.dtype.kind, "?") not in allowed:
        return jnp.issubdtype(value.dtype, jnp.floating) and "float" in allowed
    return _shape_fits(value.shape, hint.dim_str.split(), sizes)


def _shape_fits(shape: tuple[int, ...], axes: list[str], sizes: Sizes) -> bool:
    """Whether a shape has the named axes, with the sizes that they had before."""
    variadic = next((i for i, a in enumerate(axes) if a.startswith(("*", "..."))), None)
    parts: list[Any] = list(shape)
    if variadic is not None and len(shape) >= len(axes) - 1:
        end = len(shape) - (len(axes) - variadic - 1)
        parts[variadic:end] = [shape[variadic:end]]
    if len(parts) != len(axes):
        return False
    seen: Sizes = {}
    for axis, size in zip(axes, parts, strict=True):
        name = axis.removeprefix("*")
        if axis.isdecimal() and int(axis) != size:
            return False
        if name.isidentifier() and name != "_":
            if sizes.get(name, size) != size:
                return False
            seen[name] = size
    sizes |= seen
    return True


def _phrase(hint: Any, sizes: Sizes) -> str:
    """Return what an annotation asks for."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        parts = (_phrase(each, sizes) for each in typing.get_args(hint))
        return " or ".join(dict.fromkeys(parts))
    if inspect.isclass(hint) and issubclass(hint, AbstractArray):
        known = ", ".join(f"{axis} {size}" for axis, size in sizes.items())
        is_float = "float" in "".join(map(str, hint.dtypes))
        axes = hint.dim_str.replace(" ", ", ")
        array = f"an array of {'numbers' if is_float else 'integers'} ({axes})"
        return f"{array} with {known}" if known else array
    if inspect.isclass(hint) and not typing.get_args(hint):
        return _PHRASES.get(hint, f"a {hint.__name__.removeprefix('Abstract')}")
    return re.sub(r"\b\w+\.", "", str(hint))  # in Python's notation


def _shown(value: Any) -> str:
    """Return what a value is, shortened."""
    if isinstance(value, jax.Array | np.ndarray):
        return f"an array of shape {value.shape} and type {value.dtype}"
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
