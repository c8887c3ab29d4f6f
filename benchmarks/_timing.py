"""Contestants timed side by side in one process, and the table of their times."""

import dataclasses
import importlib.util
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np

REPEATS = 5
_UNITS = {"s": 1.0, "ms": 1e3, "us": 1e6}


@dataclasses.dataclass(frozen=True)
class Contestant:
    """What is timed.

    Attributes:
        run: Does the work, and waits until it is done.
        calls: How many calls, or steps, a run makes; times are those of one.
        repeats: How often it is run at most after the first time.
        note: What the table says at the end of its row.
    """

    run: Callable[[], Any]
    calls: int = 1
    repeats: int = REPEATS
    note: str = ""


@dataclasses.dataclass(frozen=True)
class Times:
    """The seconds of one contestant.

    Attributes:
        first: Those of its first run, which compiles.
        later: Those of a call in each later run.
    """

    first: float
    later: np.ndarray

    @property
    def median(self) -> float:
        return float(np.median(self.later))


def interleaved(contestants: Mapping[str, Contestant]) -> dict[str, Times]:
    """Return the times of each contestant.

    The later runs take turns, so that what else the machine does falls on all alike.
    """
    first = {name: seconds(one.run) for name, one in contestants.items()}
    later: dict[str, list[float]] = {name: [] for name in contestants}
    for turn in range(REPEATS):
        for name, one in contestants.items():
            if turn < one.repeats:
                later[name].append(seconds(one.run) / one.calls)
    return {name: Times(first[name], np.array(later[name])) for name in contestants}


@dataclasses.dataclass(frozen=True)
class Compiled:
    """A function of fixed arguments, compiled.

    Attributes:
        run: Calls it, and waits until it is done.
        memory: The bytes that it takes beside arguments and results; NaN if unknown.
        compiling: The seconds that compilation took.
        traced: The instructions of the program before it is optimized.
        optimized: Those after.
    """

    run: Callable[[], Any]
    memory: float
    compiling: float = float("nan")
    traced: int = 0
    optimized: int = 0


def compiled(function: Callable[..., Any], *arguments: Any) -> Compiled:
    """Compile a function for its arguments."""
    began = time.perf_counter()
    lowered = jax.jit(function).lower(*arguments)
    program = lowered.compile()
    took = time.perf_counter() - began
    sizes = [
        text.count(" = ") for text in (lowered.as_text("hlo"), str(program.as_text()))
    ]
    analysis = program.memory_analysis()
    memory = float(analysis.temp_size_in_bytes) if analysis else float("nan")
    run = lambda: jax.block_until_ready(program(*arguments))
    return Compiled(run, memory, took, *sizes)


def print_times(
    contestants: Mapping[str, Contestant], base: str, unit: str = "ms"
) -> None:
    """Time contestants, and print a table of median, extremes and ratio of medians.

    Args:
        contestants: What is timed, by name.
        base: The contestant that the ratios are to.
        unit: The unit of time, s, ms or us.
    """
    times, factor = interleaved(contestants), _UNITS[unit]
    print(
        f"{'':<34}{unit:>9}{'min':>9}{'max':>9}{'ratio':>8}{'first run, s':>14}",
        flush=True,
    )
    for name, found in times.items():
        numbers = (found.median, found.later.min(), found.later.max())
        shown = "".join(f"{factor * number:>9.3g}" for number in numbers)
        ratio = found.median / times[base].median
        print(
            f"{name:<34}{shown}{ratio:>8.2f}{found.first:>14.2f}"
            f"  {contestants[name].note}".rstrip(),
            flush=True,
        )


def exponent(numbers: Sequence[int], times: np.ndarray, least: int) -> float:
    """Return the power of n that times grow with from a least n on, or NaN."""
    sizes = np.asarray(numbers)
    known = np.isfinite(times) & (sizes >= least)
    if known.sum() < 2:
        return float("nan")
    return float(np.polyfit(np.log(sizes[known]), np.log(times[known]), 1)[0])


def seconds(call: Callable[[], Any]) -> float:
    """Return how long a call takes."""
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def repeated(call: Callable[[], Any], calls: int) -> Contestant:
    """Return the contestant that calls a function several times a run."""

    def run() -> None:
        for _ in range(calls):
            call()

    return Contestant(run, calls)


def is_installed(package: str, name: str) -> bool:
    """Whether a peer's package is here; a sentence is printed if not."""
    if importlib.util.find_spec(package) is not None:
        return True
    print(f"{name} is not installed, so it is left out: pip install {package}")
    return False
