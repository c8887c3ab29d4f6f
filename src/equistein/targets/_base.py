"""The interface of analytic targets."""

import abc

import equinox as eqx

from equistein._types import AnyKey, Particles, Point, Scalar
from equistein.groups import AbstractGroup


class AbstractTarget(eqx.Module):
    """A density with a declared symmetry and a sampler to compare with."""

    @abc.abstractmethod
    def log_density(self, point: Point) -> Scalar:
        """Return the log density of one point, perhaps up to a constant."""

    @abc.abstractmethod
    def sample(self, key: AnyKey, num: int) -> Particles:
        """Draw `num` independent points from the density."""

    @property
    @abc.abstractmethod
    def group(self) -> AbstractGroup:
        """The symmetry of the density."""
