"""The interface of analytic targets."""

import abc

import equinox as eqx

from equistein._arrays import check_point
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
        """Return the log density of one point, perhaps up to a constant.

        Raises:
            ValueError: If `point` is no array of numbers of the shape of a point.
        """
        check_point(f"{type(self).__name__}.log_density", point, self.shape)
        return self._log_density(point)

    @abc.abstractmethod
    def sample(self, key: AnyKey, num: int) -> Particles:
        """Draw `num` independent points from the density."""

    @property
    @abc.abstractmethod
    def group(self) -> AbstractGroup:
        """The symmetry of the density."""
