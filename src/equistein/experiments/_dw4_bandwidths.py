"""Which bandwidth: fixed, by the median rule, or learned while sampling."""

import dataclasses
import functools
from collections.abc import Mapping

import equinox as eqx
import numpy as np

from equistein.experiments._annealed import annealed_svgd
from equistein.experiments._base import Experiment, Stage
from equistein.experiments._dw4_sampling import SYSTEM
from equistein.experiments._systems import quality, reference
from equistein.experiments._toy import measured, sample_each, seed_keys
from equistein.kernels import Equivariant, MaximumDiscrepancy, RBF
from equistein.plotting import boxes, curves
from equistein.runs import FLOOR, Outcome


@dataclasses.dataclass(frozen=True, kw_only=True)
class BandwidthsConfig:
    """Settings of `dw4-bandwidths`.

    Attributes:
        num_seeds: The number of seeds, counted up from the run's seed.
        num_particles: The number of particles.
        num_steps: The number of SVGD steps, annealed.
        lengths: The fixed bandwidths, in the units of the potential.
        step: The step length.
        num_reference: The number of reference samples.
    """

    num_seeds: int = 5
    num_particles: int = 100
    num_steps: int = 2_000
    lengths: tuple[float, ...] = (0.25, 0.5, 1.0, 2.0, 4.0)
    step: float = 0.05
    num_reference: int = 40_000


def stages(config: BandwidthsConfig, seed: int) -> dict[str, Stage]:
    target = SYSTEM.target
    rules = {f"fixed-{length:g}": RBF(length) for length in config.lengths}
    rules |= {"median": RBF(), "learned": RBF(MaximumDiscrepancy())}

    @functools.cache
    def measure():
        return eqx.Partial(quality, SYSTEM, reference(SYSTEM, config.num_reference, 0))

    def sampled(base: RBF) -> Stage:
        kernel = Equivariant(base, target.group)
        sampler = annealed_svgd(kernel, config.num_steps, config.step)

        def stage() -> Outcome:
            starts = [
                target.start(key, config.num_particles)
                for key in seed_keys(seed, config.num_seeds, 0)
            ]
            return sample_each(
                sampler, target.log_density, starts,
                seed_keys(seed, config.num_seeds, 1), measure(),
                num_steps=config.num_steps,
            )  # fmt: skip

        return stage

    def floor() -> Outcome:
        num = 20 * config.num_particles
        draws = reference(SYSTEM, num, 1).reshape(20, -1, 4, 2)
        return measured(list(draws), measure())

    return {name: sampled(base) for name, base in rules.items()} | {FLOOR: floor}


def draw(config: BandwidthsConfig, outcomes: Mapping[str, Outcome]) -> dict:
    del config
    runs = {name: out for name, out in outcomes.items() if name != FLOOR}
    floor = outcomes.get(FLOOR)
    labels = {
        "energy_w2": "Wasserstein-2 of the energies",
        "distance_tv": "total variation of the distances",
    }
    figures = {
        name.replace("_", "-"): boxes(
            {run: out.metrics[name] for run, out in runs.items()}, label,
            exact=float(floor.metrics[name].mean()) if floor else None,
            exact_label="as many exact samples",
        )
        for name, label in labels.items()
    }  # fmt: skip
    figures["bandwidth"] = curves(
        {name: (out.history["step"][0], np.asarray(out.history["bandwidth"]))
         for name, out in runs.items()},
        "bandwidth", log_y=True,
    )  # fmt: skip
    return figures


DW4_BANDWIDTHS = Experiment(
    name="dw4-bandwidths",
    figure="the paper's open question",
    summary="E-SVGD on DW-4 without noise: bandwidths fixed, by rule, and learned",
    presets={
        "smoke": BandwidthsConfig(
            num_seeds=2,
            num_particles=16,
            num_steps=40,
            lengths=(1.0,),
            num_reference=256,
        ),
        "quick": BandwidthsConfig(),
        "paper": BandwidthsConfig(num_seeds=10, num_particles=400),
    },  # fmt: skip
    stages=stages,
    draw=draw,
    notes={
        "learned": "The multiple of the median rule at which the kernel Stein "
        "discrepancy of the particles is largest, chosen anew every 100 steps.",
    },
    captions={
        "energy-w2": "Distance of the energies from those of exact samples, a point a "
        "seed; the line is what as many exact samples reach.",
        "bandwidth": "The bandwidth over the run: mean and range over the seeds.",
    },
)
