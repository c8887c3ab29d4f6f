"""Timing of contestants side by side in one process."""

import time
from collections.abc import Callable, Mapping
from typing import Any

REPEATS = 5


def interleaved(
    contestants: Mapping[str, Callable[[], Any]],
) -> tuple[dict[str, float], dict[str, list[float]]]:
    """Return the seconds of each one's first call, which compiles, and of later ones.

    The later calls take turns, so that what else the machine does falls on all alike.
    """

    def seconds(contestant: Callable[[], Any]) -> float:
        began = time.perf_counter()
        contestant()
        return time.perf_counter() - began

    first = {name: seconds(contestant) for name, contestant in contestants.items()}
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(REPEATS):
        for name, contestant in contestants.items():
            times[name].append(seconds(contestant))
    return first, times
