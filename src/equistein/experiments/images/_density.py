"""What only energies that are made for densities of images are asked."""

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, Real

from equistein._types import Key, Particles
from equistein.diffusion import MixtureNoiseEnergy, ReverseDiffusion
from equistein.energies import AbstractEnergies
from equistein.experiments.images._data import ImageSets
from equistein.metrics import annealed_importance_sampling, bits_per_dimension
from equistein.training import Clamp, Fitted

_NUM_CHAINS = 16
_NUM_JUDGED = 256  # held-out images whose density is asked
_NUM_COMPLETED = 8
_NUM_WAYS = 4  # to complete an image


def bits(
    key: Key, energy: AbstractEnergies, sets: ImageSets, num_steps: int
) -> dict[str, Any]:
    """Return the bits a pixel of held-out images with the least noise.

    For pixels of 256 levels. Z is found by annealing from the normal laws, where it is
    known, and back from held-out images: the error is half of what is between both
    ways. The bits of the normal laws alone are beside.
    """
    assert isinstance(energy, MixtureNoiseEnergy)
    noise_key, anneal_key = jr.split(key)
    points = sets.upright[:_NUM_JUDGED]
    points = points + energy.noise * jr.normal(noise_key, points.shape, points.dtype)
    law, shape = energy.law.at(energy.noise), points.shape[1:]
    found = annealed_importance_sampling(
        anneal_key, energy.log_density, law, samples=points,
        num_particles=_NUM_CHAINS, num_steps=num_steps,
    )  # fmt: skip
    one_bit = points[0].size * np.log(2)
    return {
        "bits_per_dimension": bits_per_dimension(
            jnp.mean(_values(energy, points)) - found.value, shape
        ),
        "bits_per_dimension_error": found.error / one_bit,
        "bits_per_dimension_of_normals": bits_per_dimension(
            jnp.mean(_values(law, points)), shape
        ),
    }


@eqx.filter_jit
def _values(density: Any, points: Particles) -> Float[Array, " point"]:
    return jax.lax.map(density.log_density, points, batch_size=_NUM_CHAINS)


def long_chains(
    key: Key,
    fitted: Fitted,
    lengths: Sequence[float],
    num: int,
    quality: Callable[[Key, Particles], dict[str, Any]],
) -> dict[str, Real[np.ndarray, " length"]]:
    """Return the Fréchet distance of samples of shorter and longer chains."""
    generator, distances, steps = fitted.generator, [], []
    assert isinstance(generator, ReverseDiffusion)
    for length in lengths:
        steps.append(max(1, round(length * generator.steps.num_steps)))
        other = eqx.tree_at(
            lambda generator: generator.steps.num_steps, generator, steps[-1]
        )
        samples = other.sample(key, fitted.energy, num)  # type: ignore
        distances.append(float(quality(key, samples)["frechet_distance"]))
    return {"chain_steps": np.array(steps), "chain_distances": np.array(distances)}


def completed(
    key: Key, fitted: Fitted, sets: ImageSets
) -> Float[np.ndarray, "image way *shape"]:
    """Return test images, and what may go with the upper half of each."""
    side = sets.upright.shape[1]
    upper = np.arange(side) < side // 2
    rows = []
    for image in sets.upright[:_NUM_COMPLETED]:
        ways = fitted.sample(key, _NUM_WAYS, clamp=Clamp(image, upper))
        rows.append(np.concatenate([image[None], ways]))
    return np.stack(rows)
