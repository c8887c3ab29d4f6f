"""Coordinates that are held while the others are drawn."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from equistein._gate import gate
from equistein._types import Point

Project = Callable[[Point], Point]


@gate
class Clamp(eqx.Module):
    r"""Coordinates that are held while the others are drawn.

    $$p(x_F \mid x_H = v_H)$$

    Where points live on a subspace, such as clouds whose center is at the origin, held
    are the given values up to a displacement $t$ off the subspace: positions relative
    to each other. Samples are given in the frame of the values, where held coordinates
    are these exactly.

    Args:
        values: A point that has the values to hold; its others do not matter.
        mask: Which coordinates are held: one truth value for each, or for each entry of
            the first axes, such as one for each atom, or pixel.
        label: The class, or the number of a formula, to draw, too.

    Raises:
        ValueError: If the mask does not fit, nothing or everything is held, or a value
            to hold is not finite.
    """

    values: Float[Array, "*shape"]
    mask: Bool[Array, "*shape"]
    label: int | None = None

    def __init__(self, values: Any, mask: Any, label: int | None = None):
        values, mask = np.asarray(values), np.asarray(mask)
        if mask.dtype != bool or values.dtype.kind not in "iuf":
            raise ValueError(
                "Clamp needs `values` that are real numbers and a `mask` of truth "
                f"values, but got dtypes {values.dtype} and {mask.dtype}."
            )
        if mask.shape != values.shape[: mask.ndim]:
            raise ValueError(
                "Clamp needs a `mask` of the shape of `values`, or of its first axes, "
                f"but got {mask.shape} for {values.shape}."
            )
        wide = mask.reshape(mask.shape + (1,) * (values.ndim - mask.ndim))
        mask = np.broadcast_to(wide, values.shape)
        if mask.all() or not mask.any():
            raise ValueError(
                f"Clamp needs a `mask` that holds some of {mask.size} coordinates and "
                f"leaves others free, but it holds {mask.sum()}."
            )
        if not np.isfinite(values[mask]).all():
            raise ValueError(
                "Clamp needs `values` that are finite where they are held, but "
                f"{(~np.isfinite(values[mask])).sum()} of {mask.sum()} are not."
            )
        self.values = jnp.asarray(np.where(mask, values, 0), float)
        self.mask, self.label = jnp.asarray(mask), label

    def check_shape(self, shape: tuple[int, ...]) -> None:
        """Raise `ValueError` unless this holds coordinates of points of a shape."""
        if self.values.shape != shape:
            raise ValueError(
                f"The clamp is outside the points: its `values` have the shape "
                f"{self.values.shape}, but points have {shape}."
            )

    def hold(self, point: Point, project: Project, noise: Point | float = 0.0) -> Point:
        """Return a point with held coordinates set, in the point's own frame.

        Args:
            point: A point of the subspace.
            project: What takes points onto the subspace.
            noise: What is added to the values.
        """
        values = self.values.astype(point.dtype) + noise
        shift = self._displacement(point, values, project)
        return jnp.where(self.mask, values + shift, point)

    def restore(self, point: Point, project: Project) -> Point:
        """Return a point with held coordinates set, in the frame of the values."""
        values = self.values.astype(point.dtype)
        shift = self._displacement(point, values, project)
        return jnp.where(self.mask, values, point - shift)

    def _displacement(self, point: Point, values: Point, project: Project) -> Point:
        """Return the mean over held coordinates of how far a point is displaced.

        What a projection takes off is the mean over all; their ratio is that over some.
        """
        held = self.mask.astype(point.dtype)
        gap = held * (point - values)
        off, share = gap - project(gap), held - project(held)
        moved = share > 1e-6
        return jnp.where(moved, off / jnp.where(moved, share, 1), 0)


def parts_of(condition: Any) -> tuple[Any, Clamp | None]:
    """Return the label and the clamp of a condition, None where it has none."""
    if isinstance(condition, Clamp):
        return condition.label, condition
    return condition, None
