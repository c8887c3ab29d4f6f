"""Importance weights: samples of one density as samples of another."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float

from equistein._arrays import check_particles
from equistein._gate import finite_gate, keyed
from equistein._numbers import check_integers
from equistein._types import Key, LogDensity, Particles, Scalar
from equistein.samplers import warn_of_samples

_FEWEST = 2.0  # of equal weights that are as good
_ALIKE = 1e-6  # the spread of log weights of one and the same density


@finite_gate
class Weighted(eqx.Module):
    r"""Samples with weights that make them samples of another density.

    Attributes:
        particles: The samples, stacked on axis 0.
        weights: The weight of each; their sum is 1.
        effective_sample_size: How many equal weights are as good,
            $1 / \sum_i w_i^2$.
    """

    particles: Particles
    weights: Float[Array, " particle"]
    effective_sample_size: Scalar

    @keyed
    def resample(self, key: Key, num: int) -> Particles:
        """Draw particles, some several times, in proportion to their weights."""
        check_integers("`resample`", num=num)
        return self.particles[jr.choice(key, len(self.weights), (num,), p=self.weights)]


@finite_gate
def reweight(
    particles: Particles, log_density: LogDensity, target: LogDensity
) -> Weighted:
    r"""Weigh samples of one density q to be samples of another, the target p.

    $$w_i \propto p(x_i) / q(x_i)$$

    Exact as the number of samples grows, where q is above zero wherever p is; both may
    be unnormalized. The particles must be exact samples of q. Where a sampler only
    approximates q, continue from the particles with Markov chains of the target, such
    as `es.MALA`.

    Warns:
        SamplingWarning: If nearly all weight is on one particle, or all weights are
            equal.

    Raises:
        ValueError: If there are no particles, or no weight is finite.

    References:
        Kong (1992), A note on importance sampling using standardized weights, for the
        effective number.
    """
    particles = check_particles(particles, "particles")
    log_weights = _log_ratios(particles, log_density, target)
    log_weights = jnp.where(jnp.isnan(log_weights), -jnp.inf, log_weights)
    if not bool(jnp.isfinite(jnp.max(log_weights))):
        raise ValueError(
            "`particles` need a finite ratio of `target` to `log_density` somewhere, "
            "but there is none: is the target zero at all of them?"
        )
    weights = jax.nn.softmax(log_weights)
    effective = 1 / jnp.sum(weights**2)
    if float(effective) < _FEWEST:
        warn_of_samples(
            f"The weights of {len(weights)} samples are worth {float(effective):.1f} "
            "of the target: nearly all weight is on one. Give more samples, or "
            "continue with chains of the target, such as MALA.",
        )
    elif float(jnp.ptp(log_weights)) < _ALIKE:
        warn_of_samples(
            f"All {len(weights)} weights are alike (effective number "
            f"{float(effective):.1f}): `target` and `log_density` are one density.",
        )
    return Weighted(particles, weights, effective)


@eqx.filter_jit
def _log_ratios(
    particles: Particles, log_density: LogDensity, target: LogDensity
) -> Float[Array, " particle"]:
    ratio = lambda point: target(point) - log_density(point)
    return jax.lax.map(ratio, particles, batch_size=256)
