"""Which bandwidth: fixed, by the median rule, or learned while sampling."""

import dataclasses

import jax.numpy as jnp

from equistein.experiments.engine._experiment import Entry, Experiment
from equistein.experiments.engine._figures import Boxes, Curves
from equistein.experiments.systems._system import DW4_SYSTEM, reference
from equistein.experiments.toys._sampling import SamplingConfig, Toy
from equistein.kernels import Equivariant, MaximumDiscrepancy, RBF
from equistein.samplers import annealed_svgd, SVGD

_NUM_EXACT = 20  # sets of exact samples


@dataclasses.dataclass(frozen=True, kw_only=True)
class BandwidthsConfig(SamplingConfig):
    """Settings of `dw4-bandwidths`.

    Attributes:
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


def entries(config: BandwidthsConfig) -> list[Entry]:
    system, target = DW4_SYSTEM, DW4_SYSTEM.target

    def annealed(base: RBF) -> SVGD:
        kernel = Equivariant(base, target.group)
        return annealed_svgd(kernel, config.num_steps, config.step_size)

    samplers = {
        **{
            f"fixed-{width:g}": (annealed(RBF(width)), "")
            for width in config.bandwidths
        },
        "median": (annealed(RBF()), ""),
        "learned": (
            annealed(RBF(MaximumDiscrepancy())),
            "The multiple of the median rule at which the kernel Stein discrepancy of "
            "the particles is largest, chosen anew every 100 steps.",
        ),
    }
    toy = Toy(
        target=target,
        start=target.start,
        measure=lambda _, exact, points: (
            system.quality(exact, points)
            | {"mean_energy": jnp.mean(system.energy(points))}
        ),
        exact=lambda: reference(system, config.num_reference, 0),
        floor=lambda trial, num: system.floor(num, trial.index, config.num_reference),
        num_floors=_NUM_EXACT,
    )
    return toy.entries(config, samplers)


DW4_BANDWIDTHS = Experiment(
    name="dw4-bandwidths",
    figure="the open question",
    headlines=("energy_w2", "distance_tv", "mean_energy"),
    summary="E-SVGD on DW-4 without noise: bandwidths fixed, by rule, and learned",
    presets={
        "smoke": BandwidthsConfig(
            num_seeds=2, num_particles=16, num_steps=40, bandwidths=(1.0,),
            num_reference=256,
        ),
        "quick": BandwidthsConfig(),
        "paper": BandwidthsConfig(num_seeds=10, num_particles=400),
    },
    entries=entries,
    figures=(
        Boxes("energy-w2", "energy_w2", "Wasserstein-2 of the energies", log=True),
        Boxes("distance-tv", "distance_tv", "total variation of the distances"),
        Curves("bandwidth", "bandwidth", "bandwidth", log_y=True),
    ),
)  # fmt: skip
