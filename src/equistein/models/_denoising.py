"""Models that are trained by denoising at all noise levels."""

import dataclasses

from equistein._gate import gate
from equistein._types import Particles
from equistein.diffusion import (
    AbstractNoiseEnergy,
    DiffusionSteps,
    FormulaGenerator,
    MaskedNoiseEnergy,
    NoiseConditionalScoreMatching,
    NoiseEnergy,
    ReverseDiffusion,
    StepSizes,
)
from equistein.models._kernel import kernel_for
from equistein.models._model import Model, model_of, setting_or
from equistein.models._settings import DenoisingSettings
from equistein.networks import EGNN
from equistein.training import AbstractGenerator

_STEIN_FRACTION = 0.04  # of the Langevin step, where the network reaches 8
_REACH = 8.0
_COLD = 0.7  # the temperature at which molecules, that are at rest, are drawn
_BATCHES = 19_200  # half as many leave molecules of 17 atoms worse, not overfitted
_BATCHES_A_POINT = 4  # of many points; LJ-13 of 10 000 needs them, of 1 000 a third
_MOST_BATCHES = 38_400


@gate
def denoising_model(
    energy: AbstractNoiseEnergy,
    data: Particles,
    settings: DenoisingSettings | None = None,
) -> Model:
    """Return energies of all noise levels with their training by denoising.

    Args:
        energy: A `NoiseEnergy`, or a `MaskedNoiseEnergy`, untrained.
        data: The data, stacked on axis 0.
        settings: The settings, which suit small molecules by default.
    """
    settings = settings or DenoisingSettings()
    batches = settings.epoch_batches
    wanted = min(max(_BATCHES, _BATCHES_A_POINT * len(data)), _MOST_BATCHES)
    num_epochs = settings.num_epochs or -(-wanted // batches)
    generator = _reverse_diffusion(energy, data.shape[1:], settings)
    objective = NoiseConditionalScoreMatching()
    return model_of(energy, objective, generator, settings, num_epochs, batches)


def _reverse_diffusion(
    energy: AbstractNoiseEnergy, shape: tuple[int, ...], settings: DenoisingSettings
) -> AbstractGenerator:
    """Return the generator of an energy, or one for each of its formulas."""
    if isinstance(energy, MaskedNoiseEnergy):
        parts = [energy.given(number) for number in range(len(energy.formulas))]
        sizes = [len(kinds) for kinds in energy.formulas]
        return FormulaGenerator(
            tuple(
                _reverse_diffusion(part, (size, *shape[1:]), settings)
                for part, size in zip(parts, sizes, strict=True)
            )
        )
    assert isinstance(energy, NoiseEnergy)
    temperature = settings.sample_temperature
    if temperature is None:
        temperature = _COLD if _of_atoms(energy) else 1.0
    steps = diffusion_steps(energy, shape, settings)
    steps = dataclasses.replace(steps, temperature=temperature)
    return ReverseDiffusion(steps, shape, settings.sample_at_once, settings.ending)


@gate
def diffusion_steps(
    energy: NoiseEnergy, shape: tuple[int, ...], settings: DenoisingSettings
) -> DiffusionSteps:
    """Return the steps from the largest noise to the least, as warm as the density."""
    kernel = None
    if settings.stein_step_size or (
        settings.stein_step_size is None and _of_atoms(energy)
    ):
        kernel = kernel_for(energy, shape, settings.bandwidth)
    sizes = _step_sizes(energy, settings)
    return DiffusionSteps(
        step_sizes=sizes, num_steps=settings.sample_steps, kernel=kernel
    )


def _of_atoms(energy: NoiseEnergy) -> bool:
    """Whether points are molecules, of atoms with a number each."""
    return isinstance(energy.network, EGNN) and energy.network.has_atoms


def _step_sizes(energy: NoiseEnergy, settings: DenoisingSettings) -> StepSizes:
    """Return step sizes at the least noise, set by it where they are not given."""
    noise, network = energy.sigma_min, energy.network
    langevin = setting_or(settings.langevin_step_size, noise**2)
    # The score of blurred points has the norm sqrt(size) / noise.
    clip = setting_or(settings.score_clip, max(20.0, 3 * network.size**0.5) / noise)
    # The features of a graph network's kernel are numbers: its force has other units.
    unit = network.reach / _REACH if isinstance(network, EGNN) else 1.0
    stein = setting_or(settings.stein_step_size, _STEIN_FRACTION * unit**2 * langevin)
    return StepSizes(langevin, stein, clip)
