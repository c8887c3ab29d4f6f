"""`dw4-sampling`, `lj13-sampling` and `lj55-sampling`: their settings."""

import dataclasses
import functools

from equistein.experiments.engine._experiment import Experiment
from equistein.experiments.systems._config import SystemConfig
from equistein.experiments.systems._sampling import check, entries
from equistein.experiments.systems._sampling_report import compare, conclusion, figures
from equistein.experiments.systems._system import (
    DW4_SYSTEM,
    LJ13_SYSTEM,
    LJ55_SYSTEM,
    System,
)


def _experiment(
    system: System,
    title: str,
    quick: SystemConfig,
    smoke: SystemConfig,
    paper: SystemConfig,
) -> Experiment:
    """Return the experiment that samples a system from its energy alone."""
    return Experiment(
        name=f"{system.name}-sampling",
        figure="beyond the paper",
        summary=f"sample {title} from its energy: E-SVGD beside vanilla, Langevin, "
        "MALA, HMC, NUTS, MCLMC, tempering, SMC",
        presets={"smoke": smoke, "quick": quick, "paper": paper},
        entries=functools.partial(entries, system),
        check=check,
        figures=figures(system),
        headlines=("energy_w2", "distance_tv", "geometric_w2", "evaluations_to_mala"),
        compare=compare,
        conclude=conclusion,
    )


_DW4 = SystemConfig()
_LJ13 = SystemConfig(
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
    hamiltonian_step_size=0.02,
    score_clip=300.0,
)
_LJ55 = SystemConfig(
    samplers=(
        *("equivariant", "vanilla", "mala", "hmc", "nuts", "mclmc", "tempering", "smc"),
        *("svgd-hmc", "svgd-nuts", "svgd-mclmc", "svgd-tempering", "hmc-svgd"),
    ),
    num_seeds=2,
    num_steps=950,
    budgets=(200, 450),
    pair_budget=450,
    num_reference=4_000,
    num_geometric=100,
    stein_step=5e-4,
    noise=2e-4,
    start_inverse_temperature=1.0,
    reach=8.0,
    quiet_step_size=0.02,
    mala_step_size=2e-4,
    hamiltonian_step_size=0.02,
    inner="hmc",
    score_clip=500.0,
)
_SMOKE = {
    **{"num_seeds": 2, "num_steps": 40, "budgets": (10, 20), "pair_budget": 40},
    **{"num_warmup": 20, "num_ladders": 4},
}

DW4_SAMPLING = _experiment(
    DW4_SYSTEM,
    "DW-4",
    quick=_DW4,
    smoke=dataclasses.replace(
        _DW4, num_particles=32, num_reference=256, num_geometric=16, **_SMOKE
    ),
    paper=dataclasses.replace(
        _DW4, num_seeds=10, num_particles=2_000, num_steps=20_000
    ),
)
LJ13_SAMPLING = _experiment(
    LJ13_SYSTEM,
    "LJ-13",
    quick=_LJ13,
    smoke=dataclasses.replace(
        _LJ13,
        samplers=("equivariant", "mala", "tempering", "smc"),
        num_particles=16,
        num_reference=64,
        num_geometric=8,
        **_SMOKE,
    ),
    paper=dataclasses.replace(
        _LJ13, num_seeds=10, num_steps=20_000, num_geometric=1_000
    ),
)
LJ55_SAMPLING = _experiment(
    LJ55_SYSTEM,
    "LJ-55",
    quick=_LJ55,
    smoke=dataclasses.replace(
        _LJ55, samplers=("vanilla", "hmc", "svgd-tempering", "hmc-svgd"),
        num_particles=4, num_reference=16, num_geometric=2, **_SMOKE,
    ),
    paper=dataclasses.replace(
        _LJ55, num_seeds=5, num_steps=19_950,
        budgets=(200, 450, 950, 1_950, 4_950, 9_950), pair_budget=1_950,
    ),
)  # fmt: skip
