"""The squared kernel Stein discrepancy, and the bandwidth by a rule."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from equistein._gate import gate
from equistein._types import Particles, Scalar
from equistein.kernels._bandwidth import AbstractBandwidth
from equistein.kernels._base import AbstractKernel


@gate
def squared_discrepancy(
    kernel: AbstractKernel,
    particles: Particles,
    scores: Float[Array, "particle *shape"],
    *,
    own_terms: bool = True,
) -> Scalar:
    r"""Return $\frac1n \sum_i s_i \cdot \psi(x_i) + \mathrm{div}\, \psi(x_i)$.

    With `own_terms` it is the V-statistic: a squared norm, never negative. Without the
    terms of each particle with itself it is the U-statistic, whose mean over exact
    samples is zero. The bandwidth must be a number; `scores` are those of the target.

    References:
        Liu, Lee and Jordan (2016), A Kernelized Stein Discrepancy.
    """
    kernel = kernel._with_metric(particles)
    total = _statistic(kernel, particles, scores)
    if own_terms:
        return total
    own = jax.vmap(lambda x, s: _statistic(kernel, x[None], s[None]))
    num = len(particles)
    return (num * total - jnp.mean(own(particles, scores))) / max(num - 1, 1)


@gate
def measured_bandwidth(
    kernel: AbstractKernel,
    particles: Particles,
    scores: Float[Array, "particle *shape"],
) -> Scalar:
    """Return a kernel's bandwidth: the number, or its rule's for particles."""
    rule = kernel.bandwidth
    if not isinstance(rule, AbstractBandwidth):
        return jnp.asarray(rule, particles.dtype)
    some = slice(None, None, -(-len(particles) // rule.max_particles))
    x, s = particles[some], scores[some]

    def discrepancy(bandwidth):
        rescaled = kernel.with_bandwidth(bandwidth)
        return squared_discrepancy(rescaled, x, s, own_terms=False)

    return rule(kernel._squared_distances(x), discrepancy).astype(particles.dtype)


def _statistic(kernel, particles, scores) -> Scalar:
    def force(targets):
        return kernel.stein_force(targets, particles, scores)

    def diagonal(axis):
        """Return the derivative of one coordinate of psi along itself, by target."""
        basis = jnp.zeros(particles[0].size, particles.dtype).at[axis].set(1)
        tangent = jnp.broadcast_to(basis.reshape(particles.shape[1:]), particles.shape)
        pushed = jax.jvp(force, (particles,), (tangent,))[1]
        return jnp.sum(pushed * tangent)

    divergence = jnp.sum(jax.lax.map(diagonal, jnp.arange(particles[0].size)))
    return (jnp.sum(scores * force(particles)) + divergence) / len(particles)
