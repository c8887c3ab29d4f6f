"""Periodic coordinates: angles, phases, and a periodic box."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from equistein._check_arguments import check_arguments
from equistein._numbers import check_periods
from equistein._types import Features, Point
from equistein.features._base import AbstractFeatures
from equistein.groups import Trivial


@check_arguments
class Periodic(AbstractFeatures):
    r"""Coordinates that wrap around a circle of circumference $P$.

    The features put each circle into a plane, without stretching it,

    $$F(x) = \Bigl(r \cos \tfrac xr,\; r \sin \tfrac xr\Bigr), \qquad r = P / 2 \pi,$$

    and keep the other coordinates: cosines, then sines, then the others. Samplers move
    unwrapped coordinates, in which a periodic density is smooth; `wrap` is for reading.
    For particles in a periodic box the periods are its sides.

    Args:
        periods: The periods P > 0 along the last axis of a point, infinite where it
            is not periodic.
    """

    periods: tuple[float, ...]

    def __init__(self, periods: Any):
        self.periods = check_periods("Periodic", periods)

    def wrap(self, point: Point) -> Point:
        """Return the point with its coordinates from 0 to their periods."""
        wraps, periods = self._constants(point)
        return jnp.where(wraps, point % periods, point)

    def __call__(self, point: Point) -> Features:
        wraps, periods = (constant.ravel() for constant in self._constants(point))
        radii, x = periods[wraps] / (2 * jnp.pi), point.ravel()
        angles = x[wraps] / radii
        circles = radii * jnp.cos(angles), radii * jnp.sin(angles)
        return jnp.concatenate([*circles, x[~wraps]])

    def group(self, shape: tuple[int, ...]) -> Trivial:
        if not shape or shape[-1] != len(self.periods):
            raise ValueError(
                f"Periodic with {len(self.periods)} `periods` takes points of shape "
                f"(..., {len(self.periods)}), but got points of shape {shape}. Give "
                "one period for each entry of the last axis, or inf."
            )
        return Trivial()

    def _constants(self, like: Array) -> tuple[np.ndarray, Float[Array, "*batch dim"]]:
        """Return which coordinates wrap, and the periods, 1 for those that do not."""
        self.group(like.shape)
        wraps = np.isfinite(self.periods)
        periods = np.where(wraps, self.periods, 1)
        wraps, periods = (np.broadcast_to(z, like.shape) for z in (wraps, periods))
        return wraps, jnp.asarray(periods, like.dtype)
