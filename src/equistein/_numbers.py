"""Checks of numbers that a user gives."""

import math
from typing import Any

import numpy as np

MOST = 10**9
"""The largest whole number that an argument may be: steps are counted in 32 bits."""


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
    """Raise `ValueError` unless numbers, by their arguments' names, are in range."""
    for name, number in numbers.items():
        if not is_integer(number) or not least <= number <= MOST:
            raise ValueError(
                f"{owner} needs `{name}`, an integer >= {least} and at most "
                f"{MOST:.0e}, but got {number!r}."
            )


def check_positive(
    owner: str, zero: bool = False, meaning: str = "", **numbers: Any
) -> None:
    """Raise `ValueError` unless numbers are finite and positive, or zero if allowed."""
    meaning = meaning and f", {meaning}"
    sign = ">=" if zero else ">"
    for name, number in numbers.items():
        good = is_number(number) and 0 <= float(number) < math.inf
        if not good or (number == 0 and not zero):
            raise ValueError(
                f"{owner} needs `{name}` {sign} 0{meaning}, but got {number!r}."
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
