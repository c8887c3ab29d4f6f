"""The interface of analytic targets."""

import abc
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from equistein._types import AnyKey, Particles, Point, Scalar
from equistein.groups import AbstractGroup


class AbstractTarget(eqx.Module):
    """A density with a declared symmetry and a sampler to compare with."""

    @property
    @abc.abstractmethod
    def shape(self) -> tuple[int, ...]:
        """The shape of a point."""

    @abc.abstractmethod
    def _log_density(self, point: Point) -> Scalar:
        """Return the log density of a point of the right shape."""

    def log_density(self, point: Point) -> Scalar:
        """Return the log density of one point, perhaps up to a constant."""
        got, dtype = getattr(point, "shape", None), getattr(point, "dtype", int)
        if got != self.shape or not jnp.issubdtype(dtype, jnp.floating):
            text = repr(point) if got is None else f"shape {got} of {dtype}"
            raise ValueError(
                f"`{type(self).__name__}.log_density` needs `point`, one floating-point"
                f" array of shape {self.shape}, but got {text}: take jax.vmap for "
                "several points, point.astype(float) for integers."
            )
        return self._log_density(point)

    @abc.abstractmethod
    def sample(self, key: AnyKey, num: int) -> Particles:
        """Draw `num` independent points from the density."""

    @property
    @abc.abstractmethod
    def group(self) -> AbstractGroup:
        """The symmetry of the density."""


def as_tuples(array: Any) -> Any:
    """Return an array as nested tuples of numbers, which can be hashed."""
    values = np.asarray(array).tolist()
    nested = lambda part: tuple(map(nested, part)) if isinstance(part, list) else part
    return nested(values)
