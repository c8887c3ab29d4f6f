"""Shifts of all phases together."""

from typing import Any

import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float

from equistein._check_arguments import accept_integer_key, check_arguments
from equistein._numbers import check_periods
from equistein._types import AnyKey, Point
from equistein.groups._base import AbstractGroup


@check_arguments
class TorusTranslations(AbstractGroup):
    r"""The shifts of all phases of a point together, around their circles.

    $$(g_t x)_i = x_i + \tfrac{t}{2 \pi} P_i$$

    for densities that depend only on differences of phases. Points are not wrapped;
    `Periodic.wrap` does it. The representative has its first phase at 0 and the others
    from 0 to their periods. An element is an angle t. A kernel with this group needs a
    `PeriodicRBF` with the same periods as its base.

    Args:
        periods: The period $P_i$ of each coordinate of a point of shape `(n,)`,
            infinite for those that are not periodic.
    """

    periods: tuple[float, ...]

    def __init__(self, periods: Any):
        self.periods = check_periods("TorusTranslations", periods)

    def act(self, element: Float[Array, ""], point: Point) -> Point:
        self.check_shape(point.shape)
        shift = jnp.asarray(element, point.dtype) / (2 * jnp.pi)
        return point + shift * jnp.asarray(self._shifts(), point.dtype)

    def push(self, element: Float[Array, ""], vector: Point) -> Point:
        return vector

    def compose(self, left: Array, right: Array) -> Array:
        return left + right

    def inverse(self, element: Array) -> Array:
        return -element

    @accept_integer_key
    def sample(self, key: AnyKey, num: int) -> Float[Array, " num"]:
        return jr.uniform(key, (num,), maxval=2 * np.pi)

    def canonicalize(self, point: Point) -> Point:
        self.check_shape(point.shape)
        shifts = self._shifts()
        wraps, first = shifts > 0, int(np.argmax(shifts > 0))
        moved = point - point[first] * jnp.asarray(shifts / shifts[first], point.dtype)
        periods = jnp.asarray(np.where(wraps, shifts, 1), point.dtype)
        return jnp.where(wraps, moved % periods, moved).at[first].set(0)

    def check_shape(self, shape: tuple[int, ...]) -> None:
        if shape != (len(self.periods),):
            raise ValueError(
                f"TorusTranslations with {len(self.periods)} `periods` acts on points "
                f"of shape ({len(self.periods)},), but got points of shape {shape}. "
                "Give one period for each coordinate, or inf."
            )

    def _shifts(self) -> np.ndarray:
        """Return how far a full turn moves each coordinate."""
        periods = np.array(self.periods)
        return np.where(np.isfinite(periods), periods, 0)
