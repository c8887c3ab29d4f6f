"""The kernel Stein discrepancy."""

import jax
import jax.numpy as jnp

from equistein._gate import finite_gate
from equistein._types import LogDensity, Particles, Scalar
from equistein.kernels import AbstractKernel, measured_bandwidth, squared_discrepancy


@finite_gate
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
    scores = jax.vmap(jax.grad(log_density))(particles)
    kernel = kernel.with_bandwidth(measured_bandwidth(kernel, particles, scores))
    squared = squared_discrepancy(kernel, particles, scores)
    return jnp.sqrt(jnp.maximum(squared, 0))
