"""The settings of an experiment, and their checks."""

import dataclasses
import importlib.util
from collections.abc import Sequence
from typing import Any, ClassVar

from equistein._limits import check_hours, check_made
from equistein._numbers import check_fields, is_integer

_SEED = 4_096  # bytes of the parts of a seed
_POINT = 64  # of a point of two numbers: its score, its update, and as much again
_SECONDS, _OVERHEAD = 1e-10, 10_000  # of a pair of particles; pairs' worth of a step
_STEPS = ("num_steps", "num_epochs", "num_batches", "num_warm_up", "num_rounds")
_NO_POINTS = (*_STEPS, "num_seeds", "num_paper_seeds", "num_moves", "num_records")


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


def check_size(config: Any) -> None:
    """Raise unless a run of some settings fits into memory, and ends.

    Each count of points is taken for points of two coordinates, and each step of
    particles for a billionth of a second: the truth is more.

    Raises:
        LimitError: If it does not, with an estimate.
    """
    counts = {
        field.name: getattr(config, field.name)
        for field in dataclasses.fields(config)
        if field.name.startswith("num_") and is_integer(getattr(config, field.name))
    }
    seeds = counts.get("num_seeds", 1)
    check_made(f"A run of {seeds} seeds", _SEED * seeds, "take a smaller `num_seeds`")
    for name, num in counts.items():
        if name not in _NO_POINTS:
            needed = _POINT * num * (seeds if name == "num_particles" else 1)
            what = f"A run with `{name}` of {num}"
            check_made(what, needed, f"take a smaller `{name}`")
    particles = counts.get("num_particles", 1)
    pairs = particles**2 if hasattr(config, "bandwidth") else particles
    steps = max((counts.get(name, 1) for name in _STEPS), default=1)
    check_hours(
        f"{steps} steps of {particles} particles with {seeds} seeds",
        _SECONDS * steps * (_OVERHEAD + seeds * pairs), "take fewer",
    )  # fmt: skip


def has_blackjax() -> bool:
    """Return whether BlackJAX is installed, which is not loaded for the answer."""
    return importlib.util.find_spec("blackjax") is not None
