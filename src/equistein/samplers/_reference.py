"""The interface of the density that a path of densities begins at."""

import abc
from typing import Protocol, runtime_checkable

import equinox as eqx

from equistein._types import Key, Particles, Point, Scalar


@runtime_checkable
class Subspace(Protocol):
    """What particles live on: it projects points onto itself."""

    def project(self, point: Point) -> Point: ...


class AbstractReference(eqx.Module):
    """A normalized density with exact samples: where log Z is known to be 0."""

    @abc.abstractmethod
    def log_density(self, point: Point) -> Scalar:
        """Return the normalized log density of one point."""

    @abc.abstractmethod
    def sample(self, key: Key, num: int) -> Particles:
        """Draw `num` independent points from the density."""

    @abc.abstractmethod
    def project(self, point: Point) -> Point:
        """Return the nearest point of the subspace that the density lives on."""
