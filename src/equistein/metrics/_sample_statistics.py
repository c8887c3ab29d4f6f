"""Statistics of one set of samples, alone, with their density, or with weights."""

import math
from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from equistein._arrays import check_particles
from equistein._check_arguments import check_finite_arguments
from equistein._types import LogDensity, Particles, Scalar
from equistein.kernels import AbstractKernel, measured_bandwidth
from equistein.samplers import warn_of_samples

_FEWEST = 2.0  # of equal weights that are as good


@check_finite_arguments
@eqx.filter_jit
def kernel_stein_discrepancy(
    log_density: LogDensity, particles: Particles, kernel: AbstractKernel
) -> Scalar:
    r"""How far particles are from a density, without samples of it.

    $$\mathrm{KSD}^2 = \frac1n \sum_i s(x_i) \cdot \psi(x_i)
      + \mathrm{div}\, \psi(x_i)$$

    with $\psi$ the Stein force of the particles: the V-statistic, which is positive, so
    compare it with exact samples of the same number. A symmetric kernel measures the
    particles' orbits. `IMQ` detects non-convergence, `RBF` not in high dimension. A
    bandwidth rule is evaluated on the particles.

    References:
        Liu, Lee and Jordan (2016); Gorham and Mackey (2017).
    """
    scores = jax.vmap(jax.grad(log_density))(particles)
    kernel = kernel.with_bandwidth(measured_bandwidth(kernel, particles))

    def force(targets):
        return kernel.stein_force(targets, particles, scores)

    def diagonal(axis):
        """Return the derivative of one coordinate of psi along itself, by target."""
        flat = jnp.zeros((len(particles), particles[0].size), particles.dtype)
        tangent = flat.at[:, axis].set(1).reshape(particles.shape)
        pushed = jax.jvp(force, (particles,), (tangent,))[1]
        return jnp.sum(pushed * tangent)

    divergence = jnp.sum(jax.lax.map(diagonal, jnp.arange(particles[0].size)))
    squared = (jnp.sum(scores * force(particles)) + divergence) / len(particles)
    return jnp.sqrt(jnp.maximum(squared, 0))


@check_finite_arguments
@eqx.filter_jit
def mean_log_likelihood(log_density: LogDensity, particles: Particles) -> Scalar:
    r"""Return $\frac1n \sum_i \log p(x_i)$.

    A collapsed sampler scores better than exact samples: use it with a distance.
    """
    return jnp.mean(jax.vmap(log_density)(particles))


@check_finite_arguments
def bits_per_dimension(
    log_likelihood: Float[Array, "*batch"], shape: Sequence[int]
) -> Float[Array, "*batch"]:
    r"""Return bits per dimension of images.

    $$b = \log_2 256 - \frac{\log p(x)}{d \log 2}$$

    for a normalized $\log p(x)$ in nats, of images of d pixels and channels with 256
    levels, scaled to [0, 1] and dequantized.

    References:
        Theis, van den Oord and Bethge (2016), A note on the evaluation of generative
        models, section 3.1.
    """
    return 8 - log_likelihood / (math.prod(shape) * math.log(2))


@check_finite_arguments
@eqx.filter_jit
def virial(log_density: LogDensity, points: Particles) -> Scalar:
    r"""The mean of $-x \cdot \nabla \log p(x)$.

    For exact samples it is the dimension of the space they live on: $(n - 1) d$ for n
    particles with their center of mass at the origin. Heavy-tailed: it needs thousands
    of samples.
    """
    return -jnp.sum(points * jax.vmap(jax.grad(log_density))(points)) / len(points)


@check_finite_arguments
class Weighted(eqx.Module):
    r"""Samples with weights that make them samples of another density.

    The weights sum to 1; the effective size is $1 / \sum_i w_i^2$.
    """

    particles: Particles
    weights: Float[Array, " particle"]
    effective_sample_size: Scalar


@check_finite_arguments
def reweight(
    particles: Particles, log_density: LogDensity, target: LogDensity
) -> Weighted:
    r"""Weigh samples of one density q to be samples of another, the target p.

    $$w_i \propto p(x_i) / q(x_i)$$

    Exact as the number of samples grows, where q is above zero wherever p is; both may
    be unnormalized. The particles must be exact samples of q: where a sampler only
    approximates it, continue with Markov chains of the target, such as `es.MALA`. It
    warns if nearly all weight is on one particle.

    References:
        Kong (1992), A note on importance sampling using standardized weights, for the
        effective number.
    """
    particles = check_particles(particles, "particles")
    weights, effective = _weights(particles, log_density, target)
    if not float(effective) > 0:
        raise ValueError(
            "`particles` need a finite ratio of `target` to `log_density` somewhere, "
            "but there is none: is the target zero at all of them?"
        )
    if float(effective) < _FEWEST:
        warn_of_samples(
            f"The weights of {len(weights)} samples are worth {float(effective):.1f} "
            "of the target: nearly all weight is on one. Give more samples, or "
            "continue with chains of the target, such as MALA."
        )
    return Weighted(particles, weights, effective)


@eqx.filter_jit
def _weights(
    particles: Particles, log_density: LogDensity, target: LogDensity
) -> tuple[Float[Array, " particle"], Scalar]:
    """Return weights and their effective number; NaN without a finite ratio."""
    ratio = lambda point: target(point) - log_density(point)
    ratios = jax.lax.map(ratio, particles, batch_size=256)
    weights = jax.nn.softmax(jnp.where(jnp.isnan(ratios), -jnp.inf, ratios))
    return weights, 1 / jnp.sum(weights**2)
