"""What a kernel's bandwidth is for some particles."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from equistein._types import Particles, Scalar
from equistein.kernels._bandwidth import AbstractBandwidth
from equistein.kernels._base import AbstractKernel
from equistein.kernels._discrepancy import squared_discrepancy


def measured_bandwidth(
    kernel: AbstractKernel,
    particles: Particles,
    scores: Float[Array, "particle *shape"],
) -> Scalar:
    """Return a kernel's bandwidth: the number, or what its rule gives for particles.

    Args:
        kernel: The kernel.
        particles: The particles, stacked on axis 0.
        scores: The scores of the target there, at which some rules look.
    """
    rule = kernel.bandwidth
    if not isinstance(rule, AbstractBandwidth):
        return jnp.asarray(rule, particles.dtype)
    some = slice(None, None, -(-len(particles) // rule.max_particles))
    x, s = particles[some], scores[some]

    def discrepancy(bandwidth):
        narrowed = kernel.with_bandwidth(bandwidth)
        return squared_discrepancy(narrowed, x, s, own_terms=False)

    return rule(kernel._squared_distances(x), discrepancy).astype(particles.dtype)
