"""The interface of the density that annealed importance sampling begins at."""

import abc

import equinox as eqx

from equistein._types import Key, Particles, Point, Scalar


class AbstractReference(eqx.Module):
    """A normalized density with a sampler."""

    @abc.abstractmethod
    def log_density(self, point: Point) -> Scalar:
        """Return the normalized log density of one point."""

    @abc.abstractmethod
    def sample(self, key: Key, num: int) -> Particles:
        """Draw `num` independent points from the density."""

    @abc.abstractmethod
    def project(self, point: Point) -> Point:
        """Return the nearest point of the subspace that the density lives on."""
