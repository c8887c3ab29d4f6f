"""The gate that the arguments of public functions pass: types, shapes, finiteness."""

import dataclasses
import functools
import inspect
import pathlib
import traceback
import typing
from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from equistein._annotations import conforms, in_words, Sizes
from equistein._arrays import as_keys
from equistein._limits import MOST, WHY_MOST
from equistein._numbers import is_integer

Gated = TypeVar("Gated", bound=Callable[..., Any])
_SOURCE = pathlib.Path(__file__).parent
_RANDOM = ("key", "seed")  # which may be any number


def gate(public: Gated, *, finite: bool = False, name: str = "") -> Gated:
    """Let a function, or a class, check its arguments against their annotations.

    What comes may be more than the annotation says, as NumPy's numbers and arrays may:
    arrays by their number of axes, the sizes that they share by name, and their kind of
    numbers. Of what is traced the numbers are not looked at. What an annotation does
    not tell, as a range, the function checks by itself. An integer may be the `key`,
    as for `keyed`.

    Args:
        public: The function or the class.
        finite: Whether floating-point arrays must be finite.
        name: What it is called in errors; by default its own name.

    Raises:
        ValueError: By the gated function, with the argument, what was expected, and
            what came.
    """
    name = name or public.__name__
    if isinstance(public, type):
        fields = functools.partial(_hints_of_converted, public)
        begin = _gated(public.__init__, fields, finite, name)
        setattr(public, "__init__", begin)  # noqa: B010
        return public  # type: ignore[return-value]
    return _gated(public, dict, finite, name)  # type: ignore[return-value]


def _gated(
    public: Callable[..., Any],
    fields: Callable[[], dict[str, Any]],
    finite: bool,
    name: str,
) -> Callable[..., Any]:
    """Return a function that checks its arguments, by their annotations or fields'."""
    signature = inspect.signature(public)
    hints: dict[str, Any] = {}

    @functools.wraps(public)
    def gated(*arguments: Any, **named: Any) -> Any:
        try:
            bound = signature.bind(*arguments, **named)
        except TypeError as error:
            raise TypeError(f"`{name}`: {error}.") from None
        given = bound.arguments
        if "key" in given and given["key"] is not signature.parameters["key"].default:
            given["key"] = as_keys(given["key"])
            arguments, named = bound.args, bound.kwargs
        if not hints:
            hints.update(fields())  # a converter's own annotation tells less
            own = _hints(inspect.unwrap(public))
            hints.update({k: v for k, v in own.items() if v is not Any})
        told = _first_wrong(name, given, signature, hints, finite)
        if told is None:
            return public(*arguments, **named)
        _let_it_say_more(public, arguments, named)
        raise ValueError(told)

    return gated


def _let_it_say_more(
    public: Callable[..., Any], arguments: tuple[Any, ...], named: dict[str, Any]
) -> None:
    """Let a function raise its own error, which may tell what would do instead."""
    try:
        public(*arguments, **named)
        if public.__name__ == "__init__" and hasattr(arguments[0], "__check_init__"):
            arguments[0].__check_init__()
    except ValueError as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        is_own = pathlib.Path(last.filename).is_relative_to(_SOURCE)
        if is_own and (last.line or "").startswith("raise"):  # JAX hides its frames
            raise
    except Exception:  # of Python or JAX, which tell less
        pass


def _first_wrong(
    owner: str,
    given: dict[str, Any],
    signature: inspect.Signature,
    hints: dict[str, Any],
    finite: bool,
) -> str | None:
    """Return what is wrong with the first argument that is not what it should be.

    Raises:
        ValueError: If a number is so large that nothing should even be tried.
    """
    sizes: Sizes = {}
    for argument, value in given.items():
        kind, hint = signature.parameters[argument].kind, hints.get(argument)
        if hint is None or kind is inspect.Parameter.VAR_KEYWORD:
            continue
        parts = [(argument, value)]
        if kind is inspect.Parameter.VAR_POSITIONAL:
            parts = [(f"{argument}[{i}]", each) for i, each in enumerate(value)]
        for name, each in parts:
            _check_size(owner, name, each)
            told = _wrong(each, hint, sizes, finite)
            if told is not None:
                return f"`{owner}` needs `{name}`{told}"
    return None


finite_gate = functools.partial(gate, finite=True)
"""The same, where arrays of numbers must be finite as well."""


def keyed(public: Gated) -> Gated:
    """Let a function take an integer n as its `key`, which is `jax.random.key(n)`.

    Of its other arguments nothing is checked, so that it may stand where steps are
    compiled.

    Args:
        public: The function or the method.

    Raises:
        ValueError: By the function, if `key` is neither, with the remedy.
    """
    place = list(inspect.signature(public).parameters).index("key")

    @functools.wraps(public)
    def taking(*arguments: Any, **named: Any) -> Any:
        if "key" in named:
            named["key"] = as_keys(named["key"])
        elif len(arguments) > place:
            before, after = arguments[:place], arguments[place + 1 :]
            arguments = (*before, as_keys(arguments[place]), *after)
        return public(*arguments, **named)

    return taking  # type: ignore[return-value]


def _hints_of_converted(cls: type) -> dict[str, Any]:
    """Return the annotations of the fields that a converter is to make."""
    fields = dataclasses.fields(cls) if dataclasses.is_dataclass(cls) else ()
    names = {field.name for field in fields if "converter" in field.metadata}
    return {name: hint for name, hint in _hints(cls).items() if name in names}


def _hints(public: Any) -> dict[str, Any]:
    """Return the annotations of a function's arguments, or of a class's fields."""
    found = typing.get_type_hints(public, include_extras=True)
    return {name: hint for name, hint in found.items() if name != "return"}


def _check_size(owner: str, name: str, value: Any) -> None:
    """Raise if a number is so large that nothing should even be tried."""
    if is_integer(value) and value > MOST and name not in _RANDOM:
        raise ValueError(
            f"`{owner}` needs `{name}` of at most {MOST:.0e}, but got {value}: "
            f"{WHY_MOST}."
        )


def _wrong(value: Any, hint: Any, sizes: Sizes, finite: bool) -> str | None:
    """Return what was expected, and what came, unless that is what a hint says."""
    if not conforms(value, hint, sizes):
        return f", {in_words(hint, sizes)}, but got {_told(value)}."
    if not finite or not isinstance(value, jax.Array | np.ndarray):
        return None
    if value.size == 0:
        return " with at least one entry."
    if isinstance(value, Tracer) or not jnp.issubdtype(value.dtype, jnp.floating):
        return None
    bad = int(np.sum(~np.isfinite(value)))
    return f" to be finite, but {bad} of {value.size} numbers are not." if bad else None


def _told(value: Any) -> str:
    """Return what a value is, in a few words."""
    if isinstance(value, jax.Array | np.ndarray):
        return f"an array of shape {value.shape} and type {value.dtype}"
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
