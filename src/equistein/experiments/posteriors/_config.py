"""The settings that the experiments on posteriors share."""

import dataclasses
from collections.abc import Sequence
from typing import Any, ClassVar

from equistein.experiments.engine._checks import AbstractConfig


@dataclasses.dataclass(frozen=True, kw_only=True)
class PosteriorConfig(AbstractConfig):
    """Settings of the experiments on posteriors.

    Attributes:
        num_draws: The draws of each sampler of chains that are looked at.
        num_reference: The draws of the reference, and of that of the floor.
        reference_runs: The runs of tempering that each of these is made of.
        num_temperatures: Those of tempering.
        num_chains: Its ladders, each with one chain of the target; those of NUTS.
        num_steps: Its steps.
        every: The number of them between two draws of a chain.
        num_smc_particles: The particles of sequential Monte Carlo, all runs together.
        num_smc_runs: Its independent runs.
        num_moves: The moves of a particle at each temperature.
        conditional_size: The conditional effective sample size aimed at, a fraction.
        step_size: The first step of MALA, which adapts.
        nuts_warm_up: The steps of its warm-up.
        nuts_steps: The transitions of each.
        num_particles: The particles of SVGD.
        most_particles: Those of vanilla SVGD where it has as many as there are
            copies of the others, at most.
        svgd_steps: Its steps.
        svgd_step_size: The length of its normalized steps.
        noise: Its Langevin step.
        most_elements: Those of a group whose orbits are compared element by element.
    """

    num_seeds: int = 2
    num_draws: int = 512
    num_reference: int = 2_048
    reference_runs: int = 1
    num_temperatures: int = 12
    num_chains: int = 32
    num_steps: int = 3_000
    every: int = 15
    num_smc_particles: int = 1_024
    num_smc_runs: int = 16
    num_moves: int = 20
    conditional_size: float = 0.9
    step_size: float = 0.1
    nuts_warm_up: int = 300
    nuts_steps: int = 300
    num_particles: int = 64
    most_particles: int = 512
    svgd_steps: int = 1_000
    svgd_step_size: float = 0.1
    noise: float = 0.1
    most_elements: int = 120

    below_one: ClassVar[Sequence[str]] = ("conditional_size",)
    or_zero: ClassVar[Sequence[str]] = ("noise", "nuts_warm_up")

    def __post_init__(self):
        """Raise `ValueError` for settings that do not go together."""
        super().__post_init__()
        runs, particles = self.num_smc_runs, self.num_smc_particles
        if particles < 2 * runs or particles % runs:
            raise ValueError(
                "`num_smc_particles` must be twice `num_smc_runs` or more, and a "
                f"multiple of it, but got {particles} for {runs} runs."
            )
        if self.num_steps < 4 * self.every:
            raise ValueError(
                "`num_steps` must be at least 4 times `every`, but got "
                f"{self.num_steps} and {self.every}."
            )

    @property
    def num_starts(self) -> int:
        """The number of points that are drawn for any of the samplers."""
        return max(self.num_chains, self.num_particles, self.most_particles)


SMOKE: dict[str, Any] = {
    **{"num_seeds": 1, "num_draws": 16, "num_reference": 16, "num_temperatures": 3},
    **{"num_chains": 8, "num_steps": 32, "every": 4, "num_smc_particles": 16},
    **{
        "num_smc_runs": 4,
        "num_moves": 1,
        "reference_runs": 1,
        "conditional_size": 0.2,
        "nuts_warm_up": 0,
    },
    **{"nuts_steps": 8, "num_particles": 16, "most_particles": 16, "svgd_steps": 8},
}
"""Settings of runs that only show that all works."""

PAPER: dict[str, Any] = {
    **{"num_seeds": 10, "reference_runs": 4, "num_chains": 64, "num_steps": 10_000},
    **{"every": 50, "num_smc_particles": 8_192, "num_moves": 40, "nuts_warm_up": 1_000},
    **{"nuts_steps": 2_000, "svgd_steps": 5_000},
}
"""Settings of long runs."""
