"""The kernel Stein discrepancy."""

import jax
import jax.numpy as jnp

from equistein._types import LogDensity, Particles, Scalar
from equistein.kernels import AbstractKernel


def kernel_stein_discrepancy(
    log_density: LogDensity, particles: Particles, kernel: AbstractKernel
) -> Scalar:
    r"""How far particles are from a density, without samples of it: zero at best.

    $$\mathrm{KSD}^2 = \frac1n \sum_i s(x_i) \cdot \psi(x_i)
      + \mathrm{div}\, \psi(x_i)$$

    with $\psi$ the Stein force of the particles: the squared norm of $\psi$ in the
    kernel's space, for scalar and matrix-valued kernels alike. It is the V-statistic,
    whose terms with $i = j$ make it positive at every n; compare it with exact samples
    of the same number. A symmetric kernel measures the particles' orbits. With
    `IMQ` it detects non-convergence, with `RBF` not in high dimension. A bandwidth
    rule is taken on the particles.

    Args:
        log_density: The unnormalized log density of one point.
        particles: The particles, stacked on axis 0.
        kernel: The kernel.

    References:
        Liu, Lee and Jordan (2016); Gorham and Mackey (2017).
    """
    kernel = kernel.with_length(kernel.length(particles))
    scores = jax.vmap(jax.grad(log_density))(particles)

    def force(targets):
        return kernel.stein_force(targets, particles, scores)

    def diagonal(axis):
        """Return the derivative of one coordinate of psi along itself, by target."""
        basis = jnp.zeros(particles[0].size, particles.dtype).at[axis].set(1)
        tangent = jnp.broadcast_to(basis.reshape(particles.shape[1:]), particles.shape)
        pushed = jax.jvp(force, (particles,), (tangent,))[1]
        return jnp.sum(pushed * tangent)

    divergence = jnp.sum(jax.lax.map(diagonal, jnp.arange(particles[0].size)))
    squared = (jnp.sum(scores * force(particles)) + divergence) / len(particles)
    return jnp.sqrt(jnp.maximum(squared, 0))
