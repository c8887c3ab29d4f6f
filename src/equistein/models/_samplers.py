"""The steps of the samplers of learned energies, as parts that files can hold."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import optax

from equistein._gate import gate
from equistein._types import Scalar


@gate
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


@gate
def descent(step_size: Scalar) -> optax.GradientTransformation:
    """Return `optax.sgd(step_size)` whose step is an input of compiled code."""
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
