"""What experiments that sample share."""

import importlib.util

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from equistein.groups import AbstractGroup
from equistein.samplers import AnnealedSMC, run, Samples
from experiments._engine import Key, LogDensity, Particles


def augmented(
    key: Key, group: AbstractGroup, data: Particles, copies: int
) -> Float[Array, "copy *shape"]:
    """Return `copies` of each point, each transformed by a random group element."""
    points = jnp.repeat(data, copies, axis=0)
    return jax.vmap(group.act)(group.sample(key, len(points)), points)


_AT_ONCE = 3  # steps of SMC between two looks at the temperature
_MOST_TEMPERATURES = 1_000


def annealed_to_target(
    key: Key, sampler: AnnealedSMC, log_density: LogDensity, particles: Particles
) -> Samples:
    """Run annealed sequential Monte Carlo until all runs have reached the target."""
    samples = run(key, sampler, log_density, particles, num_steps=_AT_ONCE, check=False)
    for _ in range(_MOST_TEMPERATURES // _AT_ONCE):
        if np.all(samples.summary["inverse_temperatures"] == 1):
            break
        samples = run(
            key, sampler, log_density, initial_state=samples.state,
            num_steps=_AT_ONCE, check=False,
        )  # fmt: skip
    return samples


def check_runs(particles: int, runs: int) -> None:
    """Raise `ValueError` unless particles make runs of sequential Monte Carlo."""
    if particles < 2 * runs or particles % runs:
        raise ValueError(
            "`num_smc_particles` must be twice `num_smc_runs` or more, and a "
            f"multiple of it, but got {particles} for {runs} runs."
        )


def has_blackjax() -> bool:
    """Return whether BlackJAX is installed, without importing it."""
    return importlib.util.find_spec("blackjax") is not None
