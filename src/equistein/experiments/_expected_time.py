"""How long an experiment takes on this machine, from what was measured on another."""

import dataclasses
import functools
import importlib.resources
import json
import math
from collections.abc import Mapping
from typing import Any

from equistein.experiments._processor_speed import processor_speed, REFERENCE_SPEED
from equistein.experiments.engine._experiment import Experiment

COUNTED = ("num_seeds", "num_steps", "num_epochs")
"""The settings that a time is proportional to, all but what compiling takes."""

_COMPILING = 15.0  # seconds of a run that does hardly anything, where none was measured


@dataclasses.dataclass(frozen=True)
class ExpectedTime:
    """How long a run is likely to take, and where the number stems from.

    Attributes:
        seconds: Those of one processor of this machine.
        measured: The processor seconds that were measured, on the reference machine.
        preset: The preset that they were measured of.
        uncounted: Settings that differ from this preset's and do not enter.
    """

    seconds: float
    measured: float
    preset: str
    uncounted: tuple[str, ...] = ()


def expected_time(
    experiment: Experiment,
    config: Any,
    preset: str,
    *,
    measured: Mapping[str, float | None] | None = None,
    speed: float | None = None,
) -> ExpectedTime | None:
    r"""Return how long a run is likely to take, or None if nobody has measured it.

    $$t = \frac{v_0}{v} \Bigl(c + (t_0 - c) \prod_i \frac{n_i}{n_{0i}}\Bigr)$$

    with $t_0$ the seconds of a preset, $c$ those of the preset `smoke`, which compiles
    and does little else, $n$ the numbers of seeds, steps and epochs, and $v$ the speed
    of the processor.

    Args:
        experiment: The experiment.
        config: Its configuration.
        preset: What the configuration was made from.
        measured: Processor seconds of its presets; by default those of the package.
        speed: That of a processor; by default it is measured, in half a second.
    """
    if measured is None:
        measured = _measured_seconds().get(experiment.name, {})
    compiling = measured.get("smoke") or _COMPILING
    # Little is known from `smoke` of a run that does more than compile.
    as_smoke = preset == "smoke" and config == experiment.presets["smoke"]
    known = {
        name: float(seconds) for name, seconds in measured.items()
        if seconds and (as_smoke or name != "smoke")
    }  # fmt: skip
    base = next((name for name in (preset, "quick") if name in known), None)
    if base is None:
        return None
    compiling = min(compiling, known[base])
    like = dataclasses.asdict(experiment.presets[base])
    given = dataclasses.asdict(config)
    share = math.prod(
        given[name] / like[name] for name in COUNTED if like.get(name) and name in given
    )
    speed = processor_speed() if speed is None else speed
    seconds = compiling + share * (known[base] - compiling)
    return ExpectedTime(
        seconds * REFERENCE_SPEED / speed, known[base], base,
        tuple(k for k, v in given.items() if k not in COUNTED and v != like.get(k)),
    )  # fmt: skip


@functools.cache
def _measured_seconds() -> dict[str, dict[str, float | None]]:
    """Return the processor seconds of each experiment's presets, null where unknown."""
    file = importlib.resources.files("equistein.experiments") / "_seconds.json"
    return json.loads(file.read_text(encoding="utf-8"), parse_int=float)
