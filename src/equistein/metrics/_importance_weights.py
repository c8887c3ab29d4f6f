"""Importance weights: samples of one density as samples of another."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from equistein._arrays import check_particles
from equistein._check_arguments import check_finite_arguments
from equistein._types import LogDensity, Particles, Scalar
from equistein.samplers import warn_of_samples

_FEWEST = 2.0  # of equal weights that are as good


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
    approximates it, continue with Markov chains of the target, such as `es.MALA`.

    Warns:
        SamplingWarning: If nearly all weight is on one particle.

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
            "continue with chains of the target, such as MALA.",
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
