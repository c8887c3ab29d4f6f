"""Checks of the settings of an experiment."""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any


def check_settings(
    config: Any,
    *,
    or_zero: Sequence[str] = (),
    fractions: Sequence[str] = (),
    empty: Sequence[str] = (),
) -> None:
    """Raise unless the numbers of a configuration are what they can be.

    Settings inside the configuration have checked themselves.

    Args:
        config: A dataclass of numbers, words, and tuples of them.
        or_zero: The fields that may be zero; all others must be positive.
        fractions: Those that must be above 0 and below 1.
        empty: The tuples that may be empty.

    Raises:
        ValueError: Naming the field, what was expected and what came.
    """
    for field in dataclasses.fields(config):
        name, value = field.name, getattr(config, field.name)
        numbers = value if isinstance(value, tuple) else (value,)
        if not numbers and name not in empty:
            raise ValueError(f"`{name}` must hold at least one value, but is empty.")
        for number in numbers:
            if isinstance(number, bool | str) or dataclasses.is_dataclass(number):
                continue
            if not (isinstance(number, int | float) and math.isfinite(number)):
                raise ValueError(f"`{name}` must be finite, but got {value!r}.")
            if name in fractions and not 0 < number < 1:
                raise ValueError(
                    f"`{name}` must be above 0 and below 1, but got {value!r}."
                )
            if number < 0 or (number == 0 and name not in or_zero):
                least = "positive, or zero" if name in or_zero else "positive"
                raise ValueError(f"`{name}` must be {least}, but got {value!r}.")
