"""What only energies that are made for densities of images are asked."""

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import numpy as np
from jaxtyping import Float, Real

from equistein._types import Key, Particles
from equistein.diffusion import ReverseDiffusion
from equistein.experiments.images._data import ImageSets
from equistein.training import Clamp, Fitted

_NUM_COMPLETED = 8
_NUM_WAYS = 4  # to complete an image


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
