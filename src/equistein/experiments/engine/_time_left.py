"""How long the rest of a run takes, from the parts that are done."""

from collections.abc import Collection, Mapping

from equistein.runs import SEED


def time_left(
    taken: Mapping[str, float], left: Collection[str], at_once: int = 1
) -> float:
    """Return the seconds that parts are likely to take.

    Another seed of an entry takes as long as those that are done, and what was never
    done as long as all parts did on average.

    Args:
        taken: The seconds of each part that is done, one at least.
        left: The parts to come.
        at_once: How many are made at a time.
    """
    entries: dict[str, list[float]] = {}
    for name, seconds in taken.items():
        entries.setdefault(_entry(name), []).append(seconds)
    usual = list(taken.values())
    each = [entries.get(_entry(name), usual) for name in left]
    return sum(sum(seconds) / len(seconds) for seconds in each) / at_once


def _entry(part: str) -> str:
    return part.partition(SEED)[0]
