"""How many bits a pixel an energy of images needs."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from equistein._check_arguments import check_arguments
from equistein._numbers import check_integers
from equistein._types import Key, Particles, Scalar
from equistein.diffusion._mixture_energy import MixtureNoiseEnergy
from equistein.metrics import annealed_importance_sampling, bits_per_dimension

_NUM_CHAINS = 16
_MOST_JUDGED = 256  # images


@check_arguments
def image_bits(
    key: Key, energy: MixtureNoiseEnergy, images: Particles, *, num_steps: int = 100
) -> dict[str, Scalar]:
    r"""Return the bits a pixel of images with the least noise $\sigma$.

    $$b = \log_2 256 + \frac{\hat E\,[E_\sigma(x + \sigma \xi)] + \log Z}{d \log 2}$$

    for pixels from 0 to 1. $\log Z$ is found by annealing from the normal distributions
    of the energy, where it is 0, and back from the images: the mean of both ways, with
    `num_steps` temperatures each. At least two held-out images are judged, the first
    256.

    Returns:
        `bits_per_dimension`; `bits_per_dimension_gap`, half of what is between the two
        ways, which vanishes as the annealing slows down; and
        `bits_per_dimension_of_normals`, those of the normal distributions alone.

    References:
        Grosse, Ancha and Roy (2016), Measuring the reliability of MCMC inference;
        Theis, van den Oord and Bethge (2016), A note on the evaluation of generative
        models, section 3.1.
    """
    check_integers("`image_bits`", num_steps=num_steps)
    noise_key, anneal_key = jr.split(key)
    points = jnp.asarray(images)[:_MOST_JUDGED]
    noise = jr.normal(noise_key, points.shape, points.dtype)
    points = points + energy.sigma_min * noise
    normals, shape = energy.normals.at(energy.sigma_min), points.shape[1:]
    found = annealed_importance_sampling(
        anneal_key, energy.log_density, normals, samples=points,
        num_particles=_NUM_CHAINS, num_steps=num_steps,
    )  # fmt: skip

    def bits(density: Any, log_normalizer: Any) -> Scalar:
        mean = jnp.mean(_values(density, points))
        return bits_per_dimension(mean - log_normalizer, shape)

    between = jnp.abs(found.upper - found.lower) / 2
    return {
        "bits_per_dimension": bits(energy.log_density, found.value),
        "bits_per_dimension_gap": between / (points[0].size * np.log(2)),
        "bits_per_dimension_of_normals": bits(normals.log_density, 0.0),
    }


@eqx.filter_jit
def _values(function: Any, points: Particles) -> Any:
    return jax.lax.map(function, points, batch_size=_MOST_JUDGED)
