"""What experiments that sample share."""

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from equistein.groups import AbstractGroup
from equistein.samplers import AnnealedSMC, MALA, run, Samples
from experiments._engine import AbstractConfig, Key, LogDensity, Particles


def augmented(
    key: Key, group: AbstractGroup, data: Particles, copies: int
) -> Float[Array, "copy *shape"]:
    """Return `copies` of each point, each transformed by a random group element."""
    points = jnp.repeat(data, copies, axis=0)
    return jax.vmap(group.act)(group.sample(key, len(points)), points)


_AT_ONCE = 3  # steps of SMC between two looks at the temperature
_MOST_TEMPERATURES = 1_000


@dataclasses.dataclass(frozen=True, kw_only=True)
class SMCConfig(AbstractConfig):
    """Settings of an experiment with annealed sequential Monte Carlo.

    Attributes:
        num_smc_particles: The particles of sequential Monte Carlo, all runs together.
        num_smc_runs: Its independent runs.
        num_moves: The moves of a particle at each temperature.
        ess_fraction: The conditional effective sample size aimed at, a fraction.
    """

    num_smc_particles: int
    num_smc_runs: int = 16
    num_moves: int
    ess_fraction: float = 0.9

    fractions: ClassVar[Sequence[str]] = ("ess_fraction",)

    def __post_init__(self):
        """Raise `ValueError` for settings that do not go together."""
        super().__post_init__()
        particles, runs = self.num_smc_particles, self.num_smc_runs
        if particles < 2 * runs or particles % runs:
            raise ValueError(
                "`num_smc_particles` must be twice `num_smc_runs` or more, and a "
                f"multiple of it, but got {particles} for {runs} runs."
            )

    def annealed(
        self, key: Key, chains: MALA, reference: Any, log_density: LogDensity
    ) -> tuple[Samples, float]:
        """Run it until all runs have reached the target; return its evaluations too."""
        sampler = AnnealedSMC(
            chains, reference=reference, num_runs=self.num_smc_runs,
            num_moves=self.num_moves, ess_fraction=self.ess_fraction,
        )  # fmt: skip
        steps = functools.partial(
            run, key, sampler, log_density, num_steps=_AT_ONCE, check=False
        )
        samples = steps(reference.sample(key, self.num_smc_particles))
        for _ in range(_MOST_TEMPERATURES // _AT_ONCE):
            if np.all(samples.summary["inverse_temperatures"] == 1):
                break
            samples = steps(initial_state=samples.state)
        spent = self.num_smc_particles * float(samples.history["evaluations"][-1])
        return samples, spent
