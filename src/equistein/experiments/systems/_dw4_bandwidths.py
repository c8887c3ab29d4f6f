"""Which bandwidth: fixed, by the median rule, or learned while sampling."""

import dataclasses
import functools
from collections.abc import Sequence
from typing import ClassVar

import equinox as eqx

from equistein._types import Key, Particles
from equistein.experiments.engine._checks import AbstractConfig
from equistein.experiments.engine._experiment import Entry, Experiment, Trial
from equistein.experiments.engine._figures import Boxes, Curves
from equistein.experiments.systems._dw4_sampling import DW4_SYSTEM
from equistein.experiments.systems._system import quality, reference
from equistein.experiments.toys._sampling import annealed_svgd, sampled
from equistein.kernels import Equivariant, MaximumDiscrepancy, RBF
from equistein.runs import FLOOR, Outcome, seed_outcome

_NUM_EXACT = 20  # sets of exact samples


@dataclasses.dataclass(frozen=True, kw_only=True)
class BandwidthsConfig(AbstractConfig):
    """Settings of `dw4-bandwidths`.

    Attributes:
        num_particles: The number of particles.
        num_steps: The number of SVGD steps, annealed.
        bandwidths: The fixed bandwidths, in the units of the potential.
        step_size: The step size at the target, in the same units.
        num_reference: The number of reference samples.
    """

    num_particles: int = 100
    num_steps: int = 2_000
    bandwidths: tuple[float, ...] = (0.25, 0.5, 1.0, 2.0, 4.0)
    step_size: float = 0.05
    num_reference: int = 40_000

    empty: ClassVar[Sequence[str]] = ("bandwidths",)


def entries(config: BandwidthsConfig) -> list[Entry]:
    target = DW4_SYSTEM.target
    num = config.num_particles

    def start(key: Key) -> Particles:
        return target.start(key, num)

    @functools.cache
    def exact() -> Particles:
        return reference(DW4_SYSTEM, config.num_reference, 0)

    @eqx.filter_jit
    def compared(exact, points):
        return quality(DW4_SYSTEM, exact, points)

    def measure(points):
        return compared(exact(), points)

    def entry(name: str, base: RBF, note: str = "") -> Entry:
        kernel = Equivariant(base, target.group)
        stage = sampled(
            annealed_svgd(kernel, config.num_steps, config.step_size),
            target.log_density, start, measure, num_steps=config.num_steps,
        )  # fmt: skip
        return Entry(name=name, stage=stage, note=note)

    def floor(trial: Trial) -> Outcome:
        points = reference(DW4_SYSTEM, _NUM_EXACT * num, 1)[trial.index * num :][:num]
        return seed_outcome(measure(points), points)

    return [
        *(entry(f"fixed-{width:g}", RBF(width)) for width in config.bandwidths),
        entry("median", RBF()),
        entry(
            "learned",
            RBF(MaximumDiscrepancy()),
            "The multiple of the median rule at which the kernel Stein discrepancy of "
            "the particles is largest, chosen anew every 100 steps.",
        ),
        Entry(
            name=FLOOR,
            label="as many exact samples",
            stage=floor,
            num_seeds=_NUM_EXACT,
        ),
    ]


_FIGURES = (
    Boxes("energy-w2", "energy_w2", "Wasserstein-2 of the energies"),
    Boxes("distance-tv", "distance_tv", "total variation of the distances"),
    Curves("bandwidth", "bandwidth", "bandwidth", log_y=True),
)


DW4_BANDWIDTHS = Experiment(
    name="dw4-bandwidths",
    figure="the open question",
    summary="E-SVGD on DW-4 without noise: bandwidths fixed, by rule, and learned",
    presets={
        "smoke": BandwidthsConfig(
            num_seeds=2,
            num_particles=16,
            num_steps=40,
            bandwidths=(1.0,),
            num_reference=256,
        ),
        "quick": BandwidthsConfig(),
        "paper": BandwidthsConfig(num_seeds=10, num_particles=400),
    },
    entries=entries,
    figures=_FIGURES,
)
