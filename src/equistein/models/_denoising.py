"""Energies of clouds and images, one for each noise level, trained by denoising."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from equistein._check_arguments import check_arguments
from equistein._types import Key, Particles
from equistein.diffusion import (
    BlurredNormals,
    DiffusionSteps,
    HeunSteps,
    MixtureNoiseEnergy,
    NoiseConditionalScoreMatching,
    NoiseEnergy,
    ReverseDiffusion,
    StepSizes,
)
from equistein.features import SortedDistances
from equistein.groups import AbstractGroup, ImageRotations, PointCloud, Trivial
from equistein.models._contrastive import kernel_for, num_classes_of
from equistein.models._model import Model, model_of, setting_or
from equistein.models._settings import DenoisingSettings, ImageSettings
from equistein.networks import EGNN, SteerableUNet
from equistein.training import AbstractObjective, Blurred, CrossEntropy

_LOOKED_AT = 512  # clouds to measure distances in
_DIVISOR = 20  # of the median distance to the nearest particle, for sigma_min
_STEIN_FRACTION = 0.04  # of the Langevin step, where the network reaches 8
_REACH = 8.0
_MOLECULE_TEMPERATURE = 0.7  # for relaxed molecules
_BATCHES = 19_200  # with half as many, samples of 17 atoms are worse
_BATCHES_PER_POINT = 4  # of many points: LJ-13 needs them with 10 000
_MOST_BATCHES = 38_400
_IMAGE_BATCHES = 4_000
_IMAGE_NOISE = 0.05  # of the range of the pixels
_IMAGE_RATIO = 80.0  # the largest noise of images over the least
_CLASS_WEIGHT = 0.01  # of the cross-entropy, beside a mean over pixels
_CLIP = 3.0  # times the norm of the score of the noise alone
_COARSEST = 8  # pixels a side, from which on no further level halves them


def graph_model(
    key: Key, group: AbstractGroup, data: Particles, settings: DenoisingSettings,
    atomic_numbers: Sequence[int] | None,
) -> Model:  # fmt: skip
    """Return a model of a graph network, with an energy for each noise level."""
    if not isinstance(group, PointCloud) or not group.reflections:
        raise ValueError(
            f"`network` graph is for the symmetry of a PointCloud, but got {group}, "
            "with reflections: distances do not tell mirror images apart."
        )
    group.check_shape(data.shape[1:])
    nearest, farthest = _spans(data)
    noise = nearest / _DIVISOR
    if settings.ending == "flow":  # a density keeps its narrowest directions
        distances = SortedDistances(group.species, 1e-3 * nearest)
        widths = np.std(distances.in_double(data[:_LOOKED_AT]), axis=0)
        noise = min(noise, max(float(widths.min()) / 6, noise / 50))
    network = EGNN(
        group.species, atomic_numbers=atomic_numbers, dim=group.dim,
        width=settings.width, depth=settings.depth, reach=1.25 * farthest, key=key,
    )  # fmt: skip
    energy = NoiseEnergy(network, data, settings.sigma_min or noise)
    model = denoising_model(energy, data, settings)
    known = atomic_numbers is not None
    about = {"atomic_numbers": list(map(int, atomic_numbers))} if known else {}
    return dataclasses.replace(model, about=about)


def _spans(data: Particles) -> tuple[float, float]:
    """Return the median distance to the nearest particle, and the largest distance."""
    nearest, farthest = [], 0.0
    for cloud in np.asarray(data, np.float64)[:_LOOKED_AT]:
        gaps = np.linalg.norm(cloud[:, None] - cloud[None], axis=-1)
        farthest = max(farthest, float(gaps.max()))
        np.fill_diagonal(gaps, np.inf)
        nearest.append(gaps.min(axis=1))
    median = float(np.median(np.concatenate(nearest)))
    if not median > 1e-6 * farthest:
        raise ValueError("Particles in `data` coincide: most must be apart.")
    return median, farthest


@check_arguments
def denoising_model(
    energy: NoiseEnergy, data: Particles, settings: DenoisingSettings | None = None
) -> Model:
    """Return energies of all noise levels with their training by denoising.

    The default settings suit small molecules.
    """
    settings, shape = settings or DenoisingSettings(), data.shape[1:]
    noise, network = energy.sigma_min, energy.network  # the noise sets the steps
    graph = isinstance(network, EGNN)
    relaxed = graph and network.has_atoms and settings.ending == "mean"
    langevin = setting_or(settings.langevin_step_size, noise**2)
    # The score of blurred points has the norm sqrt(size) / noise.
    clip = max(20.0, _CLIP * float(np.prod(shape)) ** 0.5) / noise
    # The kernel of a graph network acts on features without units, not on lengths.
    unit = network.reach / _REACH if graph else 1.0
    given = settings.stein_step_size
    stein = setting_or(given, _STEIN_FRACTION * unit**2 * langevin)
    kernel, temperature = None, settings.sample_temperature
    if given or (given is None and relaxed):
        kernel = kernel_for(energy, shape)
    if temperature is None:
        temperature = _MOLECULE_TEMPERATURE if relaxed else 1.0
    steps = DiffusionSteps(
        step_sizes=StepSizes(langevin, stein, clip), kernel=kernel,
        num_steps=settings.sample_steps or 600, temperature=temperature,
    )  # fmt: skip
    return model_of(
        settings, energy, NoiseConditionalScoreMatching(),
        ReverseDiffusion(steps, shape, settings.sample_at_once, settings.ending),
        min(max(_BATCHES, _BATCHES_PER_POINT * len(data)), _MOST_BATCHES),
        settings.epoch_batches,
    )  # fmt: skip


@check_arguments
def image_model(
    key: Key, group: ImageRotations | Trivial, data: Particles, labels: Any = None,
    settings: ImageSettings | None = None,
) -> Model:  # fmt: skip
    """Return energies of images on a U-shaped network, with training by denoising.

    It corrects normal distributions of each class, -1 where that is unknown.
    """
    settings, num_classes = settings or ImageSettings(), num_classes_of(labels)
    group.check_shape(data.shape[1:])
    fields, side = list(settings.fields), data.shape[1] // 2 ** len(settings.fields)
    while side > _COARSEST and side % 2 == 0:  # large images have more levels
        fields.append(fields[-1])
        side //= 2
    network = SteerableUNet(
        data.shape[1:], fields, num_blocks=settings.num_blocks, symmetry=group,
        scale=max(float(jnp.sqrt(jnp.mean(data**2))), 1e-30),
        num_classes=num_classes, key=key,
    )  # fmt: skip
    known = None if labels is None else jnp.asarray(labels)
    normals = BlurredNormals(data, group, known, num_classes or 1)
    noise = settings.sigma_min or _IMAGE_NOISE * (float(jnp.ptp(data)) or 1.0)
    # Silent at first: what is known already is where learning begins.
    energy = MixtureNoiseEnergy(network.silent(), normals, noise, _IMAGE_RATIO * noise)
    objective: AbstractObjective = NoiseConditionalScoreMatching()
    if num_classes is not None:
        objective = objective + _CLASS_WEIGHT * Blurred(CrossEntropy(), noise)
    clip = _CLIP * data[0].size ** 0.5 / energy.sigma_min
    steps = HeunSteps(settings.sample_steps, clip)
    return model_of(
        settings, energy, objective,
        ReverseDiffusion(steps, data.shape[1:], settings.sample_at_once),
        _IMAGE_BATCHES,
        settings.epoch_batches,
    )  # fmt: skip
