"""Energies of images for all noise levels, trained by denoising."""

from typing import Any

import jax.numpy as jnp

from equistein._gate import gate
from equistein._types import Key, Particles
from equistein.diffusion import (
    BlurredNormals,
    HeunSteps,
    MixtureNoiseEnergy,
    NoiseConditionalScoreMatching,
    ReverseDiffusion,
)
from equistein.groups import ImageRotations, Trivial
from equistein.models._model import Model, model_of
from equistein.models._settings import ImageSettings
from equistein.networks import SteerableUNet
from equistein.training import AbstractObjective, Blurred, CrossEntropy

_CLIP = 3.0  # times the norm of the score of the noise alone
_COARSEST = 8  # pixels a side, from which on no further level halves them


@gate
def image_energy_for(
    key: Key,
    group: ImageRotations | Trivial,
    data: Particles,
    labels: Any = None,
    *,
    num_classes: int | None = None,
    settings: ImageSettings,
) -> MixtureNoiseEnergy:
    """Return energies of images on a U-shaped network, untrained.

    Args:
        key: The source of the weights.
        group: The symmetry.
        data: The images, stacked on axis 0.
        labels: The class of each, -1 where it is unknown; or None.
        num_classes: The number of classes; None for an energy without.
        settings: Its noise, and the fields and blocks of its network.
    """
    fields, side = list(settings.fields), data.shape[1] // 2 ** len(settings.fields)
    while side > _COARSEST and side % 2 == 0:  # large images have more levels
        fields.append(fields[-1])
        side //= 2
    network = SteerableUNet(
        data.shape[1:], fields, num_blocks=settings.num_blocks, symmetry=group,
        scale=_size(data), num_classes=num_classes, key=key,
    )  # fmt: skip
    known = None if labels is None else jnp.asarray(labels)
    normals = BlurredNormals(data, group, known, num_classes or 1)
    # What is known already is where learning begins.
    return MixtureNoiseEnergy(
        network.silent(), normals, settings.sigma_min, settings.sigma_max
    )


@gate
def image_model(
    energy: MixtureNoiseEnergy,
    data: Particles,
    labels: Any = None,
    settings: ImageSettings | None = None,
) -> Model:
    """Return energies of images with their training by denoising.

    Args:
        energy: The energies, untrained, of the noise of the settings.
        data: The images, stacked on axis 0.
        labels: The class of each, -1 where it is unknown, for energies with classes;
            or None.
        settings: The settings, which suit pixels from 0 to 1 by default.
    """
    settings = settings or ImageSettings()
    objective: AbstractObjective = NoiseConditionalScoreMatching()
    if labels is not None and energy.has_classes and settings.label_weight > 0:
        seen = Blurred(CrossEntropy(), settings.sigma_min)
        objective = objective + settings.label_weight * seen
    clip = _CLIP * data[0].size ** 0.5 / energy.sigma_min
    steps = HeunSteps(settings.sample_steps, clip)
    generator = ReverseDiffusion(steps, data.shape[1:], settings.sample_at_once)
    batches = settings.epoch_batches
    num_epochs = settings.num_epochs or -(-4_000 // batches)
    return model_of(energy, objective, generator, settings, num_epochs, batches)


def _size(data: Particles) -> float:
    """Return the root mean square of the pixels."""
    return max(float(jnp.sqrt(jnp.mean(data**2))), 1e-30)
