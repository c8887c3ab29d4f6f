"""The settings of an experiment, and their checks."""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar


@dataclasses.dataclass(frozen=True, kw_only=True)
class AbstractConfig:
    """Settings of an experiment: numbers, words, and tuples of them.

    Numbers are finite and positive, and tuples not empty, but for the fields that a
    class names here. Settings inside the configuration check themselves.

    Attributes:
        num_seeds: The number of seeds, counted up from the run's seed.
    """

    num_seeds: int = 5

    or_zero: ClassVar[Sequence[str]] = ()
    fractions: ClassVar[Sequence[str]] = ()
    empty: ClassVar[Sequence[str]] = ()
    at_most: ClassVar[Mapping[str, float]] = {}

    def __post_init__(self):
        """Raise `ValueError` for a number that is out of range."""
        for field in dataclasses.fields(self):
            name, value = field.name, getattr(self, field.name)
            numbers = value if isinstance(value, tuple) else (value,)
            if not numbers and name not in self.empty:
                raise ValueError(
                    f"`{name}` must hold at least one value, but is empty."
                )
            for number in numbers:
                missed = self._missed(name, number)
                if missed is not None:
                    raise ValueError(f"`{name}` must be {missed}, but got {value!r}.")

    def _missed(self, name: str, number: Any) -> str | None:
        """Return what a number of a field should be and is not, if there is such."""
        if isinstance(number, bool | str) or dataclasses.is_dataclass(number):
            return None
        if not (isinstance(number, int | float) and math.isfinite(number)):
            return "finite"
        if name in self.at_most and number > self.at_most[name]:
            return f"at most {self.at_most[name]}"
        if name in self.fractions:
            return None if 0 < number < 1 else "above 0 and below 1"
        if name in self.or_zero:
            return None if number >= 0 else "positive, or zero"
        return None if number > 0 else "positive"
