"""Sample DW-4 from its energy alone."""

import functools

import jax.random as jr

from equistein.experiments.systems._experiment import system_experiment
from equistein.experiments.systems._system import System, SystemConfig
from equistein.targets import DoubleWell, Minima


@functools.cache
def _minima() -> Minima:
    return DoubleWell().minima(jr.key(0))


DW4_SYSTEM = System(
    name="dw4",
    target=DoubleWell(),
    limits=(1.0, 8.0),
    energies=(-26.0, -14.0),
    minima=_minima,
)

DW4_SAMPLING = system_experiment(
    "dw4-sampling",
    DW4_SYSTEM,
    {
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
    },
)
