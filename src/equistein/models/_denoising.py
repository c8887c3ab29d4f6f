"""Energies of clouds and images, one for each noise level, trained by denoising."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from equistein._gate import gate
from equistein._types import Key, Particles
from equistein.diffusion import (
    AbstractNoiseEnergy,
    BlurredNormals,
    DiffusionSteps,
    FormulaGenerator,
    HeunSteps,
    MaskedNoiseEnergy,
    MixtureNoiseEnergy,
    NoiseConditionalScoreMatching,
    NoiseEnergy,
    ReverseDiffusion,
    StepSizes,
)
from equistein.groups import AbstractGroup, ImageRotations, PointCloud, Trivial
from equistein.models._energies import kernel_for, num_classes_of, size_of
from equistein.models._model import Model, model_of, setting_or
from equistein.models._settings import DenoisingSettings, ImageSettings
from equistein.molecules import atomic_numbers_of, atoms_of, formula, symbols_of
from equistein.networks import EGNN, SteerableUNet
from equistein.samplers import Normal
from equistein.training import (
    AbstractGenerator,
    AbstractObjective,
    Blurred,
    CrossEntropy,
    Fitted,
)

_LOOKED_AT = 512  # clouds to measure distances in
_NOISES = 20  # the least ones in the distance to the nearest particle
_STEIN_FRACTION = 0.04  # of the Langevin step, where the network reaches 8
_REACH = 8.0
_COLD = 0.7  # the temperature at which molecules, that are at rest, are drawn
_BATCHES = 19_200  # half as many leave molecules of 17 atoms worse, not overfitted
_BATCHES_A_POINT = 4  # of many points; LJ-13 of 10 000 needs them, of 1 000 a third
_MOST_BATCHES = 38_400
_IMAGE_BATCHES = 4_000
_CLIP = 3.0  # times the norm of the score of the noise alone
_COARSEST = 8  # pixels a side, from which on no further level halves them


def graph_model(
    key: Key,
    group: AbstractGroup,
    data: Particles,
    settings: DenoisingSettings,
    atomic_numbers: Sequence[int] | None,
) -> Model:
    """Return a graph network of all particles, with an energy for each noise level.

    It looks a quarter further than the data's largest distance.
    """
    if not isinstance(group, PointCloud) or not group.reflections:
        raise ValueError(
            f"`network` graph is for the symmetry of a PointCloud, but got {group}, "
            "with reflections: distances do not tell mirror images apart."
        )
    group.check_shape(data.shape[1:])
    nearest, farthest = _spans(data)
    network = EGNN(
        group.species, atomic_numbers=atomic_numbers, dim=group.dim,
        width=settings.width, depth=settings.depth, reach=1.25 * farthest, key=key,
    )  # fmt: skip
    energy = NoiseEnergy(network, data, settings.sigma_min or nearest / _NOISES)
    model = denoising_model(energy, data, settings)
    if atomic_numbers is None:
        return model
    about = {"atomic_numbers": list(map(int, atomic_numbers))}
    return dataclasses.replace(model, about=about)


def formulas_model(
    key: Key,
    formulas: Sequence[Sequence[str]],
    data: Particles,
    labels: Int[Array, " particle"],
    settings: DenoisingSettings,
) -> Model:
    """Return energies of molecules of several formulas, on one graph network.

    The label of each is the number of its formula; rows of zeros stand behind the atoms
    of small ones.
    """
    names = list(dict.fromkeys(symbol for row in formulas for symbol in row))
    sizes = [len(formulas[label]) for label in labels.tolist()]
    scale = (float(jnp.sum(data**2)) / (sum(sizes) * data.shape[2])) ** 0.5
    nearest, farthest = _spans(data, sizes)
    network = EGNN(
        names, atomic_numbers=atomic_numbers_of(names), dim=data.shape[2],
        width=settings.width, depth=settings.depth, reach=1.25 * farthest, key=key,
    ).of((0,) * data.shape[1])  # fmt: skip
    one = NoiseEnergy(network, data, settings.sigma_min or nearest / _NOISES)
    kinds = [tuple(map(names.index, row)) for row in formulas]
    size = jnp.asarray(scale, data.dtype)
    energy = MaskedNoiseEnergy(one, kinds, size, 2 * size)
    model = denoising_model(energy, data, settings)
    about = {"formulas": [list(map(int, atomic_numbers_of(row))) for row in formulas]}
    return dataclasses.replace(model, about=about)


def _spans(data: Particles, sizes: Sequence[int] | None = None) -> tuple[float, float]:
    """Return the median distance to the nearest particle, and the largest distance.

    Of each cloud the first particles count, as many as its size.
    """
    clouds = np.asarray(data, np.float64)[:_LOOKED_AT]
    nearest, farthest = [], 0.0
    for cloud, size in zip(clouds, sizes or [None] * len(clouds), strict=False):
        gaps = np.linalg.norm(cloud[:size, None] - cloud[None, :size], axis=-1)
        farthest = max(farthest, float(gaps.max()))
        np.fill_diagonal(gaps, np.inf)
        nearest.append(gaps.min(axis=1))
    median = float(np.median(np.concatenate(nearest)))
    if not median > 1e-6 * farthest:
        raise ValueError(
            "Particles in `data` coincide: a graph network needs most of them apart."
        )
    return median, farthest


@gate
def denoising_model(
    energy: AbstractNoiseEnergy,
    data: Particles,
    settings: DenoisingSettings | None = None,
) -> Model:
    """Return energies of all noise levels with their training by denoising.

    The default settings suit small molecules.
    """
    settings = settings or DenoisingSettings()
    batches = settings.epoch_batches
    wanted = min(max(_BATCHES, _BATCHES_A_POINT * len(data)), _MOST_BATCHES)
    return model_of(
        settings, energy, NoiseConditionalScoreMatching(),
        _reverse_diffusion(energy, data.shape[1:], settings),
        num_epochs=-(-wanted // batches), epoch_batches=batches,
    )  # fmt: skip


def _reverse_diffusion(
    energy: AbstractNoiseEnergy, shape: tuple[int, ...], settings: DenoisingSettings
) -> AbstractGenerator:
    """Return the generator of an energy, or one for each of its formulas."""
    if isinstance(energy, MaskedNoiseEnergy):
        return FormulaGenerator(
            tuple(
                _reverse_diffusion(
                    energy.given(number), (len(kinds), *shape[1:]), settings
                )
                for number, kinds in enumerate(energy.formulas)
            )
        )
    assert isinstance(energy, NoiseEnergy)
    steps = _diffusion_steps(energy, shape, settings)
    return ReverseDiffusion(steps, shape, settings.sample_at_once, settings.ending)


def _diffusion_steps(
    energy: NoiseEnergy, shape: tuple[int, ...], settings: DenoisingSettings
) -> DiffusionSteps:
    """Return the steps from the largest noise to the least, by which they are set."""
    noise, network = energy.sigma_min, energy.network
    graph = isinstance(network, EGNN)
    langevin = setting_or(settings.langevin_step_size, noise**2)
    # The score of blurred points has the norm sqrt(size) / noise.
    clip = setting_or(settings.score_clip, max(20.0, 3 * network.size**0.5) / noise)
    # The features of a graph network's kernel are numbers: its force has other units.
    unit = network.reach / _REACH if graph else 1.0
    stein = setting_or(settings.stein_step_size, _STEIN_FRACTION * unit**2 * langevin)
    of_atoms = graph and network.has_atoms
    force, temperature = settings.stein_step_size, settings.sample_temperature
    kernel = None
    if force or (force is None and of_atoms):
        kernel = kernel_for(energy, shape, settings.bandwidth)
    if temperature is None:
        temperature = _COLD if of_atoms else 1.0
    return DiffusionSteps(
        step_sizes=StepSizes(langevin, stein, clip), num_steps=settings.sample_steps,
        kernel=kernel, temperature=temperature,
    )  # fmt: skip


@gate
def image_model(
    key: Key,
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
        num_epochs=-(-_IMAGE_BATCHES // settings.epoch_batches),
        epoch_batches=settings.epoch_batches,
    )  # fmt: skip


@gate
def formulas_of(fitted: Fitted) -> tuple[str, ...]:
    """Return the formulas that a fit has learned, by number; none without elements."""
    return tuple(formula(symbols_of(row)) for row in _rows(fitted))


def _rows(fitted: Fitted) -> Sequence[Sequence[int]]:
    """Return the atomic numbers of each formula."""
    one = fitted.about.get("atomic_numbers")
    return fitted.about.get("formulas") or ([one] if one else [])


@gate
def of_formula(fitted: Fitted, wanted: int | np.integer | str) -> Fitted:
    """Return the density of one formula, which may be one that training never saw.

    The network takes atoms of any kind that it has learned; how good molecules of
    another formula are is for scores to tell. Atoms of a new formula are in the order
    of the alphabet.

    One of several formulas may be wanted by its number in the labels, and any by its
    name, such as C4H8O.

    Raises:
        ValueError: If there are not several formulas, none of this number, or an
            element that the fit does not know.
    """
    energy, generator = fitted.energy, fitted.generator
    if isinstance(wanted, str):
        names, asked = formulas_of(fitted), formula(atoms_of(wanted))
        if asked not in names:
            return _of_new_formula(fitted, asked)
        if not isinstance(energy, MaskedNoiseEnergy):
            return fitted
        wanted = names.index(asked)
    if not isinstance(energy, MaskedNoiseEnergy):
        raise ValueError(
            "`of_formula` needs the fit of a MaskedNoiseEnergy, but got one of "
            f"{type(energy).__name__}."
        )
    one = energy.given(wanted)
    assert isinstance(generator, FormulaGenerator)
    numbers = fitted.about.get("formulas") and fitted.about["formulas"][wanted]
    return _of_one(fitted, one, generator.generators[wanted], numbers)


def _of_new_formula(fitted: Fitted, wanted: str) -> Fitted:
    """Return the density of a formula that training never saw."""
    energy, generator, formulas = fitted.energy, fitted.generator, None
    if isinstance(energy, MaskedNoiseEnergy):
        assert isinstance(generator, FormulaGenerator)
        formulas, generator = energy.formulas, generator.generators[0]
        energy = energy.energy
    network = energy.network if isinstance(energy, NoiseEnergy) else None
    if not isinstance(network, EGNN) or not isinstance(generator, ReverseDiffusion):
        raise ValueError(
            f"`wanted` is {wanted}, but this is no fit of a graph network to molecules."
        )
    kind_of = {
        number: kind
        for row, kinds in zip(
            _rows(fitted), formulas or [network.species], strict=False
        )
        for number, kind in zip(row, kinds, strict=True)
    }
    numbers = list(atomic_numbers_of(sorted(atoms_of(wanted))))
    unknown = sorted(set(numbers) - set(kind_of))
    if unknown or len(numbers) < 2:
        missing = ", ".join(symbols_of(unknown)) or "one atom only"
        raise ValueError(
            f"{wanted} has {missing}, but this fit knows molecules of the elements "
            f"{', '.join(sorted(symbols_of(list(kind_of))))}, of two atoms at least."
        )
    kinds = tuple(kind_of[number] for number in numbers)
    one = eqx.tree_at(lambda e: e.network, energy, network.of(kinds))
    shape = (len(kinds), *generator.shape[1:])
    steps = generator.steps
    if isinstance(steps, DiffusionSteps) and steps.kernel is not None:
        steps = dataclasses.replace(steps, kernel=kernel_for(one, shape))
    new = ReverseDiffusion(steps, shape, generator.num_at_once)
    return _of_one(fitted, one, new, numbers)


def _of_one(
    fitted: Fitted,
    energy: NoiseEnergy,
    generator: AbstractGenerator,
    numbers: Sequence[int] | None,
) -> Fitted:
    """Return a fit whose energy and generator are those of one formula."""
    assert isinstance(generator, ReverseDiffusion)
    origin = jnp.zeros(generator.shape, fitted.reference.center.dtype)
    reference = Normal(origin, fitted.reference.scale, energy.group(origin.shape))
    about = {k: v for k, v in fitted.about.items() if k != "formulas"}
    if numbers is not None:
        about["atomic_numbers"] = list(numbers)
    return dataclasses.replace(
        fitted, energy=energy, generator=generator, reference=reference, about=about
    )
