"""The samplers that the settings name, in training and after it."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import optax

from equistein._types import Scalar
from equistein.groups import AbstractGroup
from equistein.kernels import AbstractKernel
from equistein.samplers import AbstractSampler, Langevin, SVGD
from equistein.training._config import FitConfig
from equistein.training._lengths import Lengths


class Fading(eqx.Module):
    r"""A step size that falls to 5 % over the last part of a run.

    Args:
        size: The step size.
        body: The number of steps before it begins to fall.
        tail: The number of steps over which it falls.
    """

    size: Scalar
    body: int
    tail: int

    def __call__(self, step: Any) -> Scalar:
        done = jnp.clip((step - self.body) / self.tail, 0, 1)
        return self.size * (1 - 0.95 * done)


def negatives_sampler(
    config: FitConfig, lengths: Lengths, kernel: AbstractKernel, group: AbstractGroup
) -> AbstractSampler:
    """Return the sampler of the negatives."""
    return _sampler(config, lengths, kernel, group, lambda _: lengths.langevin)


def final_sampler(
    config: FitConfig, lengths: Lengths, kernel: AbstractKernel, group: AbstractGroup
) -> AbstractSampler:
    """Return the sampler of new points: as in training, and at last with less noise."""
    tail = max(1, round(config.sample_tail * config.sample_steps))
    body = config.sample_steps - tail
    noise = Fading(lengths.langevin, body, tail)
    return _sampler(config, lengths, kernel, group, noise)


def _sampler(config, lengths, kernel, group, noise) -> AbstractSampler:
    if config.negatives == "langevin":
        return Langevin(
            noise,
            score_clip=lengths.score_clip,
            project=group.project,
        )
    return SVGD(
        kernel,
        _descent(lengths.stein_step),
        langevin=0.0 if config.langevin == 0 else noise,
        score_clip=lengths.score_clip,
        project=group.project,
    )


def _descent(step: Scalar) -> optax.GradientTransformation:
    """Return `optax.sgd(step)` with the step as an array that jit does not bake in."""
    return optax.GradientTransformation(
        _no_state,
        eqx.Partial(_descend, step),  # type: ignore[arg-type]
    )


def _no_state(params: Any) -> optax.EmptyState:
    return optax.EmptyState()


def _descend(step: Scalar, updates: Any, state: Any, params: Any = None):
    return -step.astype(updates.dtype) * updates, state
