"""Step sizes: numbers, or functions of the step number."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp

from equistein._types import Scalar

Schedule = Callable[[Any], Any]
StepSize = float | Scalar | Schedule


class ScaledSchedule(eqx.Module):
    """A schedule whose values are multiplied by a factor."""

    schedule: Schedule
    factor: float | Scalar

    def __call__(self, step: Any) -> Any:
        return self.schedule(step) * self.factor


def scaled(step_size: StepSize, factor: float | Scalar) -> StepSize:
    """Return a step size multiplied by a factor."""
    if callable(step_size):
        return ScaledSchedule(step_size, factor)
    return step_size * factor


def step_size_at(step_size: StepSize, number: Scalar) -> Scalar:
    """Return the step size in step `number`, never below zero."""
    value = step_size(number) if callable(step_size) else step_size
    # By rounding, a schedule that falls to zero may pass it.
    return jnp.maximum(jnp.asarray(value, number.dtype), 0)


def check_step_size(name: str, argument: str, value: Any, *, zero: bool) -> None:
    """Raise unless a step size that is a plain number is positive and finite.

    Args:
        name: The sampler's name.
        argument: The argument's name.
        value: What came; functions and arrays are taken as they are.
        zero: Whether it may be zero.

    Raises:
        ValueError: If it is not.
    """
    if not isinstance(value, int | float):
        return
    good = (0 <= value if zero else 0 < value) and value < float("inf")
    if not good:
        sign = ">=" if zero else ">"
        raise ValueError(f"{name} needs `{argument}` {sign} 0, but got {value!r}.")
