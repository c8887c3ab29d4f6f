"""The mean log-likelihood of samples under a density."""

import jax
import jax.numpy as jnp

from equistein._gate import finite_gate
from equistein._types import LogDensity, Particles, Scalar


@finite_gate
def mean_log_likelihood(log_density: LogDensity, particles: Particles) -> Scalar:
    r"""Return $\frac1n \sum_i \log p(x_i)$.

    A collapsed sampler scores better than exact samples do: read it beside a distance.

    Args:
        log_density: The log density of one point.
        particles: The samples, stacked on axis 0.
    """
    return jnp.mean(jax.vmap(log_density)(particles))
