"""The samplers of learned energies."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import optax

from equistein._types import Point, Scalar
from equistein.kernels import AbstractKernel
from equistein.samplers import AbstractSampler, Langevin, SVGD


class CoolingStep(eqx.Module):
    r"""A step size that falls to 5 % over the last part of a run.

    Args:
        step_size: The step size.
        body: The number of steps before it begins to fall.
        tail: The number of steps over which it falls.
    """

    step_size: Scalar
    body: int
    tail: int

    def __call__(self, step: Any) -> Scalar:
        done = jnp.clip((step - self.body) / self.tail, 0, 1)
        return self.step_size * (1 - 0.95 * done)


def descent(step_size: Scalar) -> optax.GradientTransformation:
    """Return `optax.sgd(step_size)` whose step is an input of compiled code."""
    return optax.GradientTransformation(
        no_state,
        eqx.Partial(descend, step_size),  # type: ignore[arg-type]
    )


def sampler_for(
    kernel: AbstractKernel | None,
    *,
    stein_step_size: Scalar,
    langevin_step_size: Scalar | CoolingStep | float,
    score_clip: Scalar | None,
    project: Callable[[Point], Point],
) -> AbstractSampler:
    """Return SVGD with Langevin noise, or Langevin chains alone without a kernel.

    Args:
        kernel: The kernel, or None.
        stein_step_size: The step along the Stein force, in squared units of the points.
        langevin_step_size: The Langevin step, in the same, or how it changes.
        score_clip: The largest norm of a score.
        project: What puts points onto the subspace they live on.
    """
    if kernel is None:
        return Langevin(langevin_step_size, score_clip=score_clip, project=project)
    return SVGD(
        kernel, descent(stein_step_size), langevin=langevin_step_size,
        score_clip=score_clip, project=project,
    )  # fmt: skip


def no_state(params: Any) -> optax.EmptyState:
    """Return the state of `descent`: there is none."""
    return optax.EmptyState()


def descend(step_size: Scalar, updates: Any, state: Any, params: Any = None):
    """Return the updates of `descent`."""
    return -step_size.astype(updates.dtype) * updates, state
