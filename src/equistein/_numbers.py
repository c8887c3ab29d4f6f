"""Checks of numbers that a user gives."""

import dataclasses
import math
import sys
from collections.abc import Collection
from types import NoneType
from typing import Any, get_args, get_origin, Literal

import numpy as np

from equistein._limits import MOST, WHY_MOST


def is_integer(value: Any) -> bool:
    """Whether a value is a whole number, one of NumPy's included."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def is_number(value: Any) -> bool:
    """Whether a value is a real number, one of NumPy's and JAX's included."""
    if isinstance(value, bool) or getattr(value, "shape", ()) != ():
        return False
    kind = getattr(getattr(value, "dtype", None), "kind", "")
    return isinstance(value, int | float) or kind in tuple("iuf")


def check_integers(owner: str, least: int = 1, **numbers: Any) -> None:
    """Raise `ValueError` unless numbers, by their arguments' names, are integers.

    The owner is who needs them, such as "Persistent"; the least is what will do, and
    what would take years does not.
    """
    for name, number in numbers.items():
        if not is_integer(number) or number < least:
            raise ValueError(
                f"{owner} needs `{name}`, an integer >= {least}, but got {number!r}."
            )
        if number > MOST:
            raise ValueError(
                f"{owner} needs `{name}`, an integer of at most {MOST:.0e}, but got "
                f"{number!r}: {WHY_MOST}."
            )


def check_positive(
    owner: str, zero: bool = False, meaning: str = "", **numbers: Any
) -> None:
    """Raise `ValueError` unless numbers are finite and positive, or zero if allowed."""
    meaning = meaning and f", {meaning}"
    for name, number in numbers.items():
        good = is_number(number) and 0 <= number < math.inf
        if not good or (number == 0 and not zero):
            raise ValueError(
                f"{owner} needs `{name}` {'>=' if zero else '>'} 0{meaning}, but got "
                f"{number!r}."
            )


def check_score_clip(owner: str, score_clip: Any) -> None:
    """Raise `ValueError` unless the largest norm is positive, an array or None."""
    if isinstance(score_clip, int | float | np.number) and not score_clip > 0:
        raise ValueError(f"{owner} needs `score_clip` > 0, but got {score_clip!r}.")


def check_periods(owner: str, periods: Any) -> tuple[float, ...]:
    """Return periods as numbers; raise `ValueError` unless they are positive.

    Infinite ones, of what does not wrap, are allowed, but not all.
    """
    try:
        found = tuple(float(period) for period in periods)
    except (TypeError, ValueError):
        found = ()
    if not all(period > 0 for period in found) or not any(map(math.isfinite, found)):
        raise ValueError(
            f"{owner} needs `periods` > 0, one a coordinate, inf where it does not "
            f"wrap and not all inf, but got {periods!r}."
        )
    return found


def check_fields(
    settings: Any,
    *,
    or_zero: Collection[str] = (),
    fractions: Collection[str] = (),
    below_one: Collection[str] = (),
) -> None:
    """Raise unless the fields of a dataclass are of their types, and numbers positive.

    Looks at numbers, tuples of them, which must not be empty, and choices (`Literal`).

    Args:
        settings: A dataclass.
        or_zero: The numbers that may be zero as well.
        fractions: The numbers that are 1 at most.
        below_one: The numbers that are below 1.

    Raises:
        ValueError: If one is not, with its name, what was expected and what came.
    """
    for field in dataclasses.fields(settings):
        name, value, kind = field.name, getattr(settings, field.name), field.type
        kinds: tuple[Any, ...] = get_args(kind) or (kind,)
        if get_origin(kind) is Literal:
            good, wanted = value in kinds, f"one of {', '.join(kinds)}"
        elif (value is None and NoneType in kinds) or not {int, float} & {*kinds}:
            continue
        else:
            whole, zero = int in kinds, name in or_zero
            wanted = f"a {'whole' if whole else 'finite'} number "
            wanted += "from 0 on" if zero else "above 0"
            most = sys.float_info.max
            if whole:
                wanted, most = f"{wanted}, at most {MOST:.0e}", MOST
            if name in fractions:
                wanted, most = wanted + ", at most 1", 1.0
            elif name in below_one:
                wanted, most = wanted + ", below 1", math.nextafter(1, 0)
            values = value if get_origin(kind) is tuple else (value,)
            good = values and all(_in_range(v, whole, zero, most) for v in values)
            wanted = f"one or more, each {wanted}" if values is value else wanted
        if not good:
            huge = isinstance(value, int) and value > MOST
            why = f": {WHY_MOST}" if huge else ""
            raise ValueError(f"`{name}` must be {wanted}, but got {value!r}{why}.")


def _in_range(value: Any, whole: bool, zero: bool, most: int | float) -> bool:
    if not (is_integer(value) if whole else is_number(value)):
        return False
    return 0 <= value <= most and (zero or value > 0)
