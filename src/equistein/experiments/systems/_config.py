"""The settings of sampling a particle system."""

import dataclasses
from collections.abc import Sequence
from typing import ClassVar, Literal

from equistein.experiments.engine._checks import AbstractConfig


@dataclasses.dataclass(frozen=True, kw_only=True)
class SystemConfig(AbstractConfig):
    """Settings of `dw4-sampling`, `lj13-sampling` and `lj55-sampling`.

    Attributes:
        samplers: Which are run, by the names of the report.
        num_particles: The number of particles.
        num_steps: Evaluations of the score, a particle, in the final run.
        budgets: Smaller numbers of evaluations, for the curves.
        pair_budget: The largest number for the samplers that sum over all pairs.
        num_reference: The number of reference samples.
        num_geometric: The number of clouds in the geometric distance.
        stein_step: The step of `equivariant` along the Stein force; 0 for none.
        noise: The Langevin step of `equivariant`, and of `langevin` before it cools; 0
            for none.
        start_inverse_temperature: The first inverse temperature, at most 1.
        annealed_fraction: The fraction of the steps that anneal, at most 1.
        corrected_fraction: That of the evaluations that `equivariant` ends with MALA.
        num_bins: The centers of its features, a smooth histogram of distances.
        bin_width: The width of a bin.
        reach: The last center.
        quiet_step_size: The step size of `quiet` and `vanilla`, in units of length.
        mala_step_size: The first step size of MALA.
        descent: Evaluations of annealed MALA, or of E-SVGD, from which the chains go on
            that do not come down from overlaps: BlackJAX's and those of tempering.
        hamiltonian_step_size: The step size from which their warm-ups begin.
        num_warmup: The steps of BlackJAX's warm-ups.
        trajectory: The steps of a trajectory of HMC and of microcanonical chains.
        inner: What moves the chains of tempering and of sequential Monte Carlo.
        num_ladders: The ladders of tempering; each is looked at many times.
        smc_share: The conditional effective share of sequential Monte Carlo.
        smc_moves: Its moves a temperature.
        score_clip: The longest score.
    """

    samplers: tuple[str, ...] = (
        *("equivariant", "thinned", "quiet", "vanilla", "langevin", "mala"),
        *("hmc", "nuts", "mclmc", "tempering", "smc"),
    )
    num_particles: int = 1_000
    num_steps: int = 5_000
    budgets: tuple[int, ...] = (50, 100, 200, 400, 800, 1_600)
    pair_budget: int = 1_600
    num_reference: int = 40_000
    num_geometric: int = 1_000
    stein_step: float = 0.015
    noise: float = 0.01
    start_inverse_temperature: float = 0.1
    annealed_fraction: float = 0.9
    corrected_fraction: float = 0.25
    num_bins: int = 8
    bin_width: float = 1.0
    reach: float = 8.0
    quiet_step_size: float = 0.05
    mala_step_size: float = 0.01
    descent: int = 100
    hamiltonian_step_size: float = 0.15
    num_warmup: int = 300
    trajectory: int = 10
    inner: Literal["mala", "hmc"] = "mala"
    num_ladders: int = 100
    smc_share: float = 0.9
    smc_moves: int = 4
    score_clip: float = 100.0

    or_zero: ClassVar[Sequence[str]] = ("stein_step", "noise")
    fractions: ClassVar[Sequence[str]] = (
        "start_inverse_temperature",
        "annealed_fraction",
    )
    below_one: ClassVar[Sequence[str]] = ("corrected_fraction", "smc_share")

    def __post_init__(self):
        """Raise `ValueError` for settings that do not go together."""
        super().__post_init__()
        if self.num_particles < 2:
            raise ValueError(
                f"`num_particles` must be at least 2, but got {self.num_particles!r}."
            )
        if self.pair_budget < min((*self.budgets, self.num_steps)):
            raise ValueError(
                "`pair_budget` must be at least the smallest of `budgets`, but got "
                f"{self.pair_budget!r}."
            )
