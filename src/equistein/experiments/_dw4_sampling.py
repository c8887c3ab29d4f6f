"""Sample DW-4 from its energy alone."""

import functools

import jax.random as jr

from equistein.experiments._base import Experiment, Stage
from equistein.experiments._system_figures import CAPTIONS, draw, NOTES
from equistein.experiments._system_stages import compare, stages
from equistein.experiments._systems import System, SystemConfig
from equistein.targets import DoubleWell, Minima


@functools.cache
def _minima() -> Minima:
    return DoubleWell().minima(jr.key(0))


SYSTEM = System(
    name="dw4", target=DoubleWell(), limits=(1.0, 8.0), minima=_minima,
)  # fmt: skip


def _stages(config: SystemConfig, seed: int) -> dict[str, Stage]:
    return stages(config, SYSTEM, seed)


DW4_SAMPLING = Experiment(
    name="dw4-sampling",
    figure="beyond the paper",
    summary="sample DW-4 from its energy: E-SVGD beside vanilla, Langevin, MALA, NUTS",
    presets={
        "smoke": SystemConfig(
            num_seeds=2,
            num_particles=32,
            num_steps=40,
            budgets=(10, 20),
            pair_budget=40,
            num_reference=256,
            num_geometric=16,
        ),
        "quick": SystemConfig(),
        "paper": SystemConfig(num_seeds=10, num_particles=2_000, num_steps=20_000),
    },  # fmt: skip
    stages=_stages,
    compare=compare,
    notes=NOTES,
    captions=CAPTIONS,
    draw=functools.partial(draw, system=SYSTEM, energies=(-26.0, -14.0)),
)
