"""The settings of an experiment, and their checks."""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any, ClassVar


@dataclasses.dataclass(frozen=True, kw_only=True)
class AbstractConfig:
    """Settings of an experiment: numbers, words, and tuples of them.

    Numbers are finite and positive, and tuples not empty, but for the fields that a
    class names here.

    Attributes:
        num_seeds: The number of seeds, counted up from the run's seed.
    """

    num_seeds: int = 5

    or_zero: ClassVar[Sequence[str]] = ()
    fractions: ClassVar[Sequence[str]] = ()
    empty: ClassVar[Sequence[str]] = ()

    def __post_init__(self):
        """Raise `ValueError` for a number that is out of range."""
        check_settings(
            self, or_zero=self.or_zero, fractions=self.fractions, empty=self.empty
        )


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
