"""How long a sweep would take, from some of its runs."""

import os
import random
from collections.abc import Callable, Sequence
from typing import NamedTuple

from equistein._durations import in_words
from equistein.cli._parse import parsed
from equistein.runs import Member

_MOST = 6  # runs that are looked at


class SweepTime(NamedTuple):
    """What the runs of a sweep are likely to take.

    Attributes:
        each: Seconds of a run on one processor, on average.
        num_runs: How many there are.
        at_once: How many go at a time.
    """

    each: float
    num_runs: int
    at_once: int

    @property
    def seconds(self) -> float:
        """Those until all are done."""
        return self.each * self.num_runs / self.at_once

    def __str__(self) -> str:
        """Tell it, and that it is an estimate."""
        return (
            f"About {in_words(self.seconds)} in all, {self.at_once} at a time and "
            f"{in_words(self.each)} each on one processor of this machine: an estimate."
        )


def sweep_time(
    called: Callable[[Member], list[str]],
    members: Sequence[Member],
    workers: int | None,
) -> SweepTime | None:
    """Return the time of a sweep; None if nobody has measured that of its runs.

    Of fits one is measured. Of runs, those that differ in more than the seed are
    looked at, some of them where there are many.

    Args:
        called: The whole command of a run.
        members: The runs.
        workers: How many runs go at a time; None for one a processor.
    """
    processors = os.cpu_count() or 1
    chosen = list({member.setting: member for member in members}.values())
    num = 1 if called(chosen[0])[0] == "fit" else min(_MOST, len(chosen))
    if num < len(chosen):
        chosen = random.Random(0).sample(chosen, num)
    found = [parsed(called(member)).expected_seconds() for member in chosen]
    if None in found:
        return None
    at_once = min(workers or processors, processors, len(members))
    return SweepTime(sum(found) / num, len(members), at_once)
