"""Annealed sequential Monte Carlo that goes on until it is there."""

import numpy as np

from equistein._types import Key, LogDensity, Particles
from equistein.samplers import AnnealedSMC, run, Samples

_AT_ONCE = 3  # steps between looks at whether it is there
_MOST_TEMPERATURES = 1_000


def annealed_to_target(
    key: Key, sampler: AnnealedSMC, log_density: LogDensity, particles: Particles
) -> Samples:
    """Return the particles, weighed and moved until all runs are at the target."""
    samples = run(key, sampler, log_density, particles, num_steps=_AT_ONCE, check=False)
    for _ in range(_MOST_TEMPERATURES // _AT_ONCE):
        if np.all(samples.summary["inverse_temperatures"] == 1):
            break
        samples = run(
            key, sampler, log_density, initial_state=samples.state,
            num_steps=_AT_ONCE, check=False,
        )  # fmt: skip
    return samples
