"""Energies of images that are trained by denoising over many levels."""

from typing import Any

import jax.numpy as jnp

from equistein._types import Key, Particles
from equistein.diffusion import BlindDiffusion
from equistein.energies import AbstractEnergy, JointEnergy, PlainEnergy
from equistein.groups import ImageRotations, Trivial
from equistein.models._model import Model, model_of
from equistein.models._settings import ImageSettings
from equistein.networks import SteerableUNet
from equistein.training import (
    AbstractObjective,
    Blurred,
    CrossEntropy,
    DenoisingScoreMatching,
    Normals,
)

_COARSEST = 8  # pixels a side, from which on no further level halves them
_CLASS_NOISE = 3.0  # times the data's size: classes can be told apart up to it


def image_energy_for(
    key: Key,
    group: ImageRotations | Trivial,
    data: Particles,
    *,
    num_classes: int | None = None,
    settings: ImageSettings,
) -> AbstractEnergy:
    """Return an energy of images on a U-shaped network, untrained.

    Args:
        key: The source of the weights.
        group: The symmetry.
        data: The images, stacked on axis 0.
        num_classes: The number of classes of a `JointEnergy`; None for a
            `PlainEnergy`.
        settings: Its noise, and the fields and blocks of its network.
    """
    fields, side = list(settings.fields), data.shape[1] // 2 ** len(settings.fields)
    while side > _COARSEST and side % 2 == 0:  # large images have more levels
        fields.append(fields[-1])
        side //= 2
    network = SteerableUNet(
        data.shape[1:], fields, num_blocks=settings.num_blocks, symmetry=group,
        noise=settings.noise, scale=_size(data), out_size=num_classes, key=key,
    )  # fmt: skip
    return PlainEnergy(network) if num_classes is None else JointEnergy(network)


def image_model(
    energy: AbstractEnergy,
    data: Particles,
    labels: Any = None,
    settings: ImageSettings | None = None,
) -> Model:
    """Return an energy of images with its training by denoising.

    Args:
        energy: An energy on a `SteerableUNet` of the noise of the settings, untrained.
        data: The images, stacked on axis 0.
        labels: The class of each, -1 where it is unknown, for a `JointEnergy`; or None.
        settings: The settings, which suit pixels from 0 to 1 by default.
    """
    settings = settings or ImageSettings()
    shape, size = data.shape[1:], _size(data)
    group, noise_max = energy.group(shape), settings.noise_max
    objective: AbstractObjective = DenoisingScoreMatching(settings.noise, noise_max)
    start = class_start = Normals(data, group)
    num_classes = energy.num_classes(shape)
    if labels is not None and num_classes is not None:
        class_start = Normals(data, group, jnp.asarray(labels), num_classes)
        if settings.label_weight > 0:
            seen = Blurred(CrossEntropy(), settings.noise)
            objective = objective + settings.label_weight * seen
    generator = BlindDiffusion(
        start, class_start, noise=settings.noise, noise_max=noise_max,
        class_noise=min(noise_max, max(2 * settings.noise, _CLASS_NOISE * size)),
        num_steps=settings.sample_steps, num_at_once=settings.sample_at_once,
    )  # fmt: skip
    batches = settings.epoch_batches
    num_epochs = settings.num_epochs or -(-4_000 // batches)
    return model_of(energy, objective, generator, settings, num_epochs, batches)


def _size(data: Particles) -> float:
    """Return the root mean square of the pixels."""
    return max(float(jnp.sqrt(jnp.mean(data**2))), 1e-30)
