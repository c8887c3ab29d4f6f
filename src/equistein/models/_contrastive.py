"""Models that are trained by contrastive divergence."""

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from equistein._gate import gate
from equistein._limits import check_memory
from equistein._types import Particles, Scalar
from equistein.energies import AbstractEnergy, JointEnergy
from equistein.kernels import RBF
from equistein.models._energies import kernel_for
from equistein.models._model import Model, model_of, setting_or
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

    Labels are the class of each point, -1 where it is unknown, for a `JointEnergy`, or
    its known energy, NaN where it is unknown. The default settings suit small particle
    systems.

    Raises:
        ValueError: If no kernel is known for the symmetry of the energy.
    """
    settings = settings or ContrastiveSettings()
    shape = data.shape[1:]
    _check_memory(math.prod(shape), settings)
    data = jax.vmap(energy.group(shape).project)(data)
    initial = _initial(energy, data, labels, settings)
    negatives, sampler = _samplers(energy, initial, settings)
    generator = SamplingGenerator(
        sampler, initial, num_steps=settings.sample_steps,
        num_at_once=settings.sample_at_once,
    )  # fmt: skip
    batches = settings.epoch_batches or max(1, len(data) // settings.batch_size)
    return model_of(
        settings, energy, _objective(negatives, labels, settings), generator,
        num_epochs=max(60, -(-500 // batches)), epoch_batches=batches,
    )  # fmt: skip


def _check_memory(size: int, settings: ContrastiveSettings) -> None:
    """Raise unless the particles of a batch, and those kept, fit into memory."""
    numbers = settings.num_particles * (size + sum(settings.widths))
    numbers += size * (settings.buffer_size or 0)
    what = f"Training with {settings.num_particles} particles"
    remedy = "take a smaller `num_particles`, `widths` or `buffer_size`"
    check_memory(what, _BYTES * numbers, remedy)


def _initial(
    energy: AbstractEnergy, data: Particles, labels: Any, settings: ContrastiveSettings
) -> AbstractInitial:
    """Return the distribution that particles and new samples start from."""
    shape = data.shape[1:]
    if settings.initial == "box":
        return Box(data, energy.group(shape))
    if labels is None or not isinstance(energy, JointEnergy):
        return Normals(data, energy.group(shape))
    num_classes = energy.num_classes(shape)
    return Normals(data, energy.group(shape), jnp.asarray(labels), num_classes)


def _samplers(
    energy: AbstractEnergy, initial: AbstractInitial, settings: ContrastiveSettings
) -> tuple[AbstractNegatives, AbstractSampler]:
    """Return the negatives, and what draws new samples."""
    shape = initial.center.shape
    group = energy.group(shape)
    langevin = setting_or(settings.langevin_step_size, (0.01 * initial.reach) ** 2)
    names = ("num_particles", "num_steps", "reset_probability")
    options: dict[str, Any] = {name: getattr(settings, name) for name in names}
    if settings.negatives == "reweighted":
        chains = MALA(langevin, score_clip=settings.score_clip, project=group.project)
        reference = Normal(initial.center, initial.reach / 2, group)
        annealed = AnnealedSMC(chains, reference=reference, num_runs=1)
        return Reweighted(chains, reference, **options), annealed
    kernel = None
    if settings.kernel == "plain":
        kernel = RBF(settings.bandwidth)
    elif settings.kernel == "equivariant":
        kernel = kernel_for(energy, shape, settings.bandwidth)
    stein = setting_or(settings.stein_step_size, langevin)
    clip = setting_or(settings.score_clip, 450 / initial.reach)

    def sampler(step: Any) -> AbstractSampler:
        """Return SVGD with Langevin noise, or Langevin chains without a kernel."""
        step = 0.0 if settings.langevin_step_size == 0 else step
        more: dict[str, Any] = {"score_clip": clip, "project": group.project}
        if kernel is None:
            return Langevin(step, **more)
        return SVGD(kernel, descent(stein), langevin=step, **more)

    tail = max(1, round(settings.cooling_fraction * settings.sample_steps))
    cooling = CoolingStep(langevin, settings.sample_steps - tail, tail)
    negatives = Persistent(
        sampler(langevin), initial, buffer_size=settings.buffer_size,
        reset_to_data=settings.reset_to_data, **options,
    )  # fmt: skip
    return negatives, sampler(cooling)


def _objective(
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


class CoolingStep(eqx.Module):
    """A step size that falls to 5 % over the last part, the tail, of a run."""

    step_size: Scalar
    body: int
    tail: int

    def __call__(self, step: Any) -> Scalar:
        done = jnp.clip((step - self.body) / self.tail, 0, 1)
        return self.step_size * (1 - 0.95 * done)


def descent(step_size: Scalar) -> optax.GradientTransformation:
    """Return `optax.sgd(step_size)`, whose step size is an input of compiled code."""
    return optax.GradientTransformation(
        no_state,
        eqx.Partial(descend, step_size),  # type: ignore[arg-type]
    )


def no_state(params: Any) -> optax.EmptyState:
    """Return the state of `descent`: there is none."""
    return optax.EmptyState()


def descend(step_size: Scalar, updates: Any, state: Any, params: Any = None):
    """Return the updates of `descent`."""
    return -step_size.astype(updates.dtype) * updates, state
