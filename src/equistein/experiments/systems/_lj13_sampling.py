"""Sample LJ-13 from its energy alone."""

import dataclasses

from equistein.experiments.systems._experiment import system_experiment
from equistein.experiments.systems._system import System, SystemConfig
from equistein.targets import LennardJones

LJ13_SYSTEM = System(
    name="lj13",
    target=LennardJones(),
    limits=(0.5, 5.0),
    energies=(-70.0, -10.0),
    published="lj13/test_split_LJ13-1000.npy",
)

_QUICK = SystemConfig(
    num_steps=2_500,
    budgets=(50, 100, 200, 400, 1_000),
    pair_budget=100,
    num_reference=10_000,
    num_geometric=200,
    stein_step=0.002,
    noise=3e-4,
    start_inverse_temperature=1.0,
    bin_width=0.7,
    reach=5.0,
    quiet_step_size=0.02,
    mala_step_size=1e-3,
    nuts_step_size=0.02,
    score_clip=300.0,
)

LJ13_SAMPLING = system_experiment(
    "lj13-sampling",
    LJ13_SYSTEM,
    {
        "smoke": dataclasses.replace(
            _QUICK,
            num_seeds=2,
            num_particles=16,
            num_steps=40,
            budgets=(10, 20),
            pair_budget=40,
            num_reference=64,
            num_geometric=8,
        ),
        "quick": _QUICK,
        "paper": dataclasses.replace(
            _QUICK, num_seeds=10, num_steps=20_000, num_geometric=1_000
        ),
    },
)
