"""Models that are trained by contrastive divergence."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from equistein._gate import gate
from equistein._limits import check_made
from equistein._types import Particles, Scalar
from equistein.energies import AbstractEnergy, JointEnergy
from equistein.kernels import AbstractKernel, RBF
from equistein.models._kernel import kernel_for
from equistein.models._model import Model, model_of, setting_or
from equistein.models._samplers import CoolingStep, descent
from equistein.models._settings import ContrastiveSettings
from equistein.samplers import (
    AbstractSampler,
    AnnealedSMC,
    Langevin,
    MALA,
    Normal,
    SVGD,
)
from equistein.training import (
    AbstractInitial,
    AbstractNegatives,
    AbstractObjective,
    Blurred,
    Box,
    ContrastiveDivergence,
    CrossEntropy,
    Normals,
    Persistent,
    ReplayBuffer,
    Reweighted,
    SamplingGenerator,
    SquaredError,
)

_BYTES = 32  # of a number of a particle, with its gradient and what a step needs


@gate
def contrastive_model(
    energy: AbstractEnergy,
    data: Particles,
    labels: Any = None,
    settings: ContrastiveSettings | None = None,
) -> Model:
    """Return an energy with its contrastive training.

    Args:
        energy: The energy, untrained.
        data: The data, stacked on axis 0.
        labels: The class of each point, -1 where it is unknown, for a `JointEnergy`;
            or its known energy, NaN where it is unknown; or None.
        settings: The settings, which suit small particle systems by default.

    Raises:
        ValueError: If no kernel is known for the symmetry of the energy.
    """
    settings = settings or ContrastiveSettings()
    shape = data.shape[1:]
    _check_memory(math.prod(shape), settings)
    group = energy.group(shape)
    data = jax.vmap(group.project)(data)
    initial = _initial(energy, data, labels, settings)
    langevin = setting_or(settings.langevin_step_size, (0.01 * initial.reach) ** 2)
    batches = settings.epoch_batches or max(1, len(data) // settings.batch_size)
    num_epochs = settings.num_epochs or max(60, -(-500 // batches))
    parts = _reweighted if settings.negatives == "reweighted" else _persistent
    negatives, sampler = parts(energy, shape, initial, langevin, settings)
    objective = objective_for(negatives, labels, settings)
    generator = SamplingGenerator(
        sampler, initial, num_steps=settings.sample_steps,
        num_at_once=settings.sample_at_once,
    )  # fmt: skip
    return model_of(energy, objective, generator, settings, num_epochs, batches)


def _check_memory(size: int, settings: ContrastiveSettings) -> None:
    """Raise unless the particles of a batch, and those kept, fit into memory."""
    units = size + sum(settings.widths)
    needed = _BYTES * settings.num_particles * units
    needed += _BYTES * size * (settings.buffer_size or 0)
    check_made(
        f"Training with {settings.num_particles} particles", needed,
        "take a smaller `num_particles` or `buffer_size`",
    )  # fmt: skip


def _reweighted(
    energy: AbstractEnergy,
    shape: tuple[int, ...],
    initial: AbstractInitial,
    langevin: Scalar,
    settings: ContrastiveSettings,
) -> tuple[AbstractNegatives, AbstractSampler]:
    """Return chains with weights, and what draws new samples."""
    group = energy.group(shape)
    chains = MALA(langevin, score_clip=settings.score_clip, project=group.project)
    reference = Normal(initial.center, initial.reach / 2, group)
    negatives = Reweighted(
        chains, reference, num_particles=settings.num_particles,
        num_steps=settings.num_steps, reset_probability=settings.reset_probability,
    )  # fmt: skip
    return negatives, AnnealedSMC(chains, reference=reference, num_runs=1)


def _persistent(
    energy: AbstractEnergy,
    shape: tuple[int, ...],
    initial: AbstractInitial,
    langevin: Scalar,
    settings: ContrastiveSettings,
) -> tuple[AbstractNegatives, AbstractSampler]:
    """Return particles without weights, and what draws new samples."""
    group = energy.group(shape)
    kernel = _kernel(energy, shape, settings)
    stein = setting_or(settings.stein_step_size, langevin)
    clip = setting_or(settings.score_clip, 450 / initial.reach)
    tail = max(1, round(settings.cooling_fraction * settings.sample_steps))
    cooling = CoolingStep(langevin, settings.sample_steps - tail, tail)
    quiet = settings.langevin_step_size == 0

    def sampler(step_size):
        """Return SVGD with Langevin noise, or Langevin chains without a kernel."""
        step_size = 0.0 if quiet else step_size
        options: dict[str, Any] = {"score_clip": clip, "project": group.project}
        if kernel is None:
            return Langevin(step_size, **options)
        return SVGD(kernel, descent(stein), langevin=step_size, **options)

    return _negatives(sampler(langevin), initial, settings), sampler(cooling)


def _initial(
    energy: AbstractEnergy, data: Particles, labels: Any, settings: ContrastiveSettings
) -> AbstractInitial:
    """Return the distribution that the settings name, for particles and new samples."""
    group = energy.group(data.shape[1:])
    if settings.initial == "box":
        return Box(data, group)
    if labels is None or not isinstance(energy, JointEnergy):
        return Normals(data, group)
    num_classes = energy.num_classes(data.shape[1:])
    return Normals(data, group, jnp.asarray(labels), num_classes)


def _negatives(
    sampler: AbstractSampler, initial: AbstractInitial, settings: ContrastiveSettings
) -> AbstractNegatives:
    """Return persistent particles, or a replay buffer if the settings have one."""
    options: dict[str, Any] = {
        "num_particles": settings.num_particles,
        "num_steps": settings.num_steps,
        "reset_probability": settings.reset_probability,
        "reset_to_data": settings.reset_to_data,
    }
    if settings.buffer_size is None:
        return Persistent(sampler, initial, **options)
    return ReplayBuffer(sampler, initial, settings.buffer_size, **options)


@gate
def objective_for(
    negatives: AbstractNegatives, labels: Any, settings: ContrastiveSettings
) -> AbstractObjective:
    """Return contrastive divergence, and what the labels are learned by."""
    objective: AbstractObjective = ContrastiveDivergence(
        negatives, settings.regularization
    )
    weight = settings.label_weight
    known = labels is not None and weight > 0
    classes = known and np.issubdtype(np.asarray(labels).dtype, np.integer)
    if classes:
        objective = objective + weight * CrossEntropy()
    if settings.data_noise:
        objective = Blurred(objective, settings.data_noise)
    if known and not classes:
        objective = objective + weight * SquaredError()
    return objective


def _kernel(
    energy: AbstractEnergy, shape: tuple[int, ...], settings: ContrastiveSettings
) -> AbstractKernel | None:
    if settings.kernel == "none":
        return None
    if settings.kernel == "plain":
        return RBF(settings.bandwidth)
    return kernel_for(energy, shape, settings.bandwidth)
