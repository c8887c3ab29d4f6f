"""Timing of contestants side by side in one process."""

import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

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


def print_milliseconds(times: Mapping[str, list[float]], calls: int, base: str) -> None:
    """Print a table of the milliseconds of a call.

    Args:
        times: For each contestant the seconds of each run.
        calls: The number of calls in a run.
        base: The contestant that the ratios are to.
    """
    middle = float(np.median(times[base]))
    print(f"{'':<32}{'ms':>9}{'min':>9}{'max':>9}{'ratio':>8}")
    for name, seconds in times.items():
        numbers = np.array([np.median(seconds), min(seconds), max(seconds)])
        shown = "".join(f"{x:>9.1f}" for x in 1e3 * numbers / calls)
        print(f"{name:<32}{shown}{numbers[0] / middle:>8.2f}")
