"""The settings of an experiment, and their checks."""

import dataclasses
import importlib.util
from collections.abc import Sequence
from typing import ClassVar

from equistein._numbers import check_fields


@dataclasses.dataclass(frozen=True, kw_only=True)
class AbstractConfig:
    """Settings of an experiment: numbers, words, and tuples of them.

    Numbers are finite and positive, and tuples of them not empty. A class names the
    fields that may be zero as well, those that are 1 at most, and those below 1.

    Attributes:
        num_seeds: The number of seeds, counted up from the run's seed.
    """

    num_seeds: int = 5

    or_zero: ClassVar[Sequence[str]] = ()
    fractions: ClassVar[Sequence[str]] = ()
    below_one: ClassVar[Sequence[str]] = ()

    def __post_init__(self):
        """Raise `ValueError` for a number that is out of range."""
        check_fields(
            self, or_zero=self.or_zero, fractions=self.fractions,
            below_one=self.below_one,
        )  # fmt: skip


def has_blackjax() -> bool:
    """Return whether BlackJAX is installed, which is not loaded for the answer."""
    return importlib.util.find_spec("blackjax") is not None
