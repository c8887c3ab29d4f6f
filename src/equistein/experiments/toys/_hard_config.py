"""The settings of the mixture whose modes are far apart."""

import dataclasses
from collections.abc import Sequence
from typing import ClassVar

from equistein.experiments.engine._checks import AbstractConfig
from equistein.samplers import Normal
from equistein.targets import HardMixture


@dataclasses.dataclass(frozen=True, kw_only=True)
class HardMixtureConfig(AbstractConfig):
    r"""Settings of `hard-mixture`.

    The reference of tempering and sequential Monte Carlo is a normal density around
    the origin with the scale `reference_reach * radius / sqrt(dim)`. At 1 its points
    are as far from the origin as the modes are, and more of the path's mass is in the
    narrowest mode, where least of it is, than for other scales: 1.2 % in 20 dimensions,
    and .3 % at a scale of 15.

    Attributes:
        dim: The dimension, from 2 to 50.
        weights: The weights of the modes.
        width_ratio: The largest width of a mode over the smallest, at least 1.
        radius: The distance of the modes from the origin.
        reference_reach: The typical distance of the reference's points from the origin,
            over that of the modes.
        wide_reach: That of `wide`.
        wide_seeds: The number of seeds of `wide`, at most.
        num_temperatures: Those of tempering.
        num_ladders: Its ladders, each with one chain of the target.
        num_steps: Its steps.
        adapt_fraction: The fraction of them that adapt, and are not averaged over.
        num_records: How often its chains are looked at, to average over them.
        num_smc_particles: The particles of sequential Monte Carlo, all runs together.
        num_smc_runs: Its independent runs.
        num_moves: The moves of a particle at each temperature.
        conditional_size: The conditional effective sample size aimed at, a fraction.
        smc_divisors: What its particles are divided by in smaller runs, for the curve.
        num_chains: The chains of MALA.
        chain_steps: The steps of each.
        nuts_chains: The chains of NUTS.
        nuts_warm_up: The steps of its warm-up; 0 for none, with a step size of 1.
        nuts_steps: The transitions of each.
        num_svgd_particles: The particles of SVGD.
        svgd_steps: Its steps.
        svgd_step_size: The length of its normalized steps.
        num_exact: The exact samples of the floor.
        width_ratios: Where it is shown how tempering begins to fail.
        ratio_steps: The steps of tempering there.
        ratio_particles: The particles of sequential Monte Carlo there.
        ratio_moves: The moves of each at each temperature.
    """

    num_seeds: int = 2
    dim: int = 20
    weights: tuple[float, ...] = (0.4, 0.3, 0.2, 0.1)
    width_ratio: float = 1.4
    radius: float = 15.0
    reference_reach: float = 1.0
    wide_reach: float = 4.5
    wide_seeds: int = 3
    num_temperatures: int = 10
    num_ladders: int = 64
    num_steps: int = 20_000
    adapt_fraction: float = 0.1
    num_records: int = 400
    num_smc_particles: int = 65_536
    num_smc_runs: int = 16
    num_moves: int = 15
    conditional_size: float = 0.9
    smc_divisors: tuple[int, ...] = (16, 4)
    num_chains: int = 512
    chain_steps: int = 2_000
    nuts_chains: int = 64
    nuts_warm_up: int = 500
    nuts_steps: int = 100
    num_svgd_particles: int = 256
    svgd_steps: int = 2_000
    svgd_step_size: float = 0.1
    num_exact: int = 2_000
    width_ratios: tuple[float, ...] = (1.0, 1.1, 1.2, 1.3, 1.4)
    ratio_steps: int = 2_000
    ratio_particles: int = 4_096
    ratio_moves: int = 15

    or_zero: ClassVar[Sequence[str]] = ("nuts_warm_up",)
    below_one: ClassVar[Sequence[str]] = ("adapt_fraction", "conditional_size")

    def __post_init__(self):
        """Raise `ValueError` for settings that do not go together."""
        super().__post_init__()
        if self.width_ratio < 1:  # as it says itself, but without making one
            raise ValueError(
                f"HardMixture needs `width_ratio` >= 1, but got {self.width_ratio!r}."
            )
        if min(self.width_ratios) < 1:
            raise ValueError(
                f"`width_ratios` must be at least 1, but got {self.width_ratios!r}."
            )
        for num in self.smc_sizes:
            if num < 2 * self.num_smc_runs or num % self.num_smc_runs:
                raise ValueError(
                    "`num_smc_particles`, divided by each of `smc_divisors`, and "
                    "`ratio_particles` must be twice `num_smc_runs` or more, and a "
                    f"multiple of it, but got {num} for {self.num_smc_runs} runs."
                )
        steps = min(self.num_steps, self.ratio_steps)
        if self.num_records > steps or self.adapt_fraction * steps < 4:
            raise ValueError(
                "`num_steps` and `ratio_steps` must be at least `num_records` and "
                f"4 / `adapt_fraction`, but got {steps}."
            )

    @property
    def smc_sizes(self) -> tuple[int, ...]:
        """The numbers of particles of all runs of sequential Monte Carlo."""
        smaller = [self.num_smc_particles / divisor for divisor in self.smc_divisors]
        if any(num % 1 for num in smaller):
            raise ValueError(
                "`num_smc_particles` must be a multiple of each of `smc_divisors`, but "
                f"got {self.num_smc_particles} and {self.smc_divisors}."
            )
        return (*map(int, smaller), self.num_smc_particles, self.ratio_particles)

    @property
    def num_starts(self) -> int:
        """The number of particles that are drawn for any of the samplers."""
        return max(
            self.num_ladders, self.num_chains, self.nuts_chains, self.num_svgd_particles
        )

    def target(self, width_ratio: float | None = None) -> HardMixture:
        """Return the mixture, of another width ratio if it is given."""
        return HardMixture(
            self.dim, weights=self.weights, radius=self.radius,
            width_ratio=width_ratio or self.width_ratio,
        )  # fmt: skip

    def reference(self, reach: float) -> Normal:
        """Return the reference whose points are this far out, the modes at 1."""
        target = self.target()
        return Normal(0 * target.means[0], reach * self.radius / self.dim**0.5)
