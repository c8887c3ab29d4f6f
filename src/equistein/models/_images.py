"""Energies of images for all noise levels, trained by denoising."""

from typing import Any

import jax.numpy as jnp
import jax.random as jr
import numpy as np

from equistein._gate import gate
from equistein._numbers import check_integers
from equistein._types import AnyKey, Key, Particles, Scalar
from equistein.diffusion import (
    BlurredNormals,
    HeunSteps,
    MixtureNoiseEnergy,
    NoiseConditionalScoreMatching,
    ReverseDiffusion,
)
from equistein.groups import ImageRotations, Trivial
from equistein.metrics import annealed_importance_sampling, bits_per_dimension
from equistein.models._energies import num_classes_of, size_of, values_at
from equistein.models._model import Model, model_of
from equistein.models._settings import ImageSettings
from equistein.networks import SteerableUNet
from equistein.training import AbstractObjective, Blurred, CrossEntropy

_CLIP = 3.0  # times the norm of the score of the noise alone
_COARSEST = 8  # pixels a side, from which on no further level halves them
_BATCHES = 4_000
_NUM_CHAINS = 16
_MOST_JUDGED = 256  # images


@gate
def image_model(
    key: AnyKey,
    group: ImageRotations | Trivial,
    data: Particles,
    labels: Any = None,
    settings: ImageSettings | None = None,
) -> Model:
    """Return energies of images on a U-shaped network, with training by denoising.

    It corrects normal distributions of each class, -1 where that is unknown. The
    default settings suit pixels from 0 to 1.
    """
    settings, num_classes = settings or ImageSettings(), num_classes_of(labels)
    group.check_shape(data.shape[1:])
    fields, side = list(settings.fields), data.shape[1] // 2 ** len(settings.fields)
    while side > _COARSEST and side % 2 == 0:  # large images have more levels
        fields.append(fields[-1])
        side //= 2
    network = SteerableUNet(
        data.shape[1:], fields, num_blocks=settings.num_blocks, symmetry=group,
        scale=size_of(data), num_classes=num_classes, key=key,
    )  # fmt: skip
    known = None if labels is None else jnp.asarray(labels)
    normals = BlurredNormals(data, group, known, num_classes or 1)
    # What is known already is where learning begins.
    energy = MixtureNoiseEnergy(
        network.silent(), normals, settings.sigma_min, settings.sigma_max
    )
    objective: AbstractObjective = NoiseConditionalScoreMatching()
    if num_classes is not None and settings.label_weight > 0:
        seen = Blurred(CrossEntropy(), settings.sigma_min)
        objective = objective + settings.label_weight * seen
    clip = _CLIP * data[0].size ** 0.5 / energy.sigma_min
    steps = HeunSteps(settings.sample_steps, clip)
    return model_of(
        settings, energy, objective,
        ReverseDiffusion(steps, data.shape[1:], settings.sample_at_once),
        num_epochs=-(-_BATCHES // settings.epoch_batches),
        epoch_batches=settings.epoch_batches,
    )  # fmt: skip


@gate
def image_bits(
    key: Key, energy: MixtureNoiseEnergy, images: Particles, *, num_steps: int = 100
) -> dict[str, Scalar]:
    r"""Return the bits a pixel of images with the least noise $\sigma$.

    $$b = \log_2 256 + \frac{\hat E\,[E_\sigma(x + \sigma \xi)] + \log Z}{d \log 2}$$

    for pixels from 0 to 1. $\log Z$ is found by annealing from the normal distributions
    of the energy, where it is 0, and back from the images: the mean of both ways.

    At least two images that were held out are judged, the first 256, with `num_steps`
    temperatures each way.

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
    points = points + energy.sigma_min * jr.normal(
        noise_key, points.shape, points.dtype
    )
    normals, shape = energy.normals.at(energy.sigma_min), points.shape[1:]
    found = annealed_importance_sampling(
        anneal_key, energy.log_density, normals, samples=points,
        num_particles=_NUM_CHAINS, num_steps=num_steps,
    )  # fmt: skip

    def bits(density: Any, log_normalizer: Any) -> Scalar:
        mean = jnp.mean(values_at(density, points))
        return bits_per_dimension(mean - log_normalizer, shape)

    between = jnp.abs(found.upper - found.lower) / 2
    return {
        "bits_per_dimension": bits(energy.log_density, found.value),
        "bits_per_dimension_gap": between / (points[0].size * np.log(2)),
        "bits_per_dimension_of_normals": bits(normals.log_density, 0.0),
    }
