"""Kernels made from a radial kernel."""

from typing import Generic, TypeVar

import equinox as eqx

from equistein._types import LogDensity, Particles, Point
from equistein.groups import AbstractGroup, check_invariance
from equistein.kernels._bandwidth import Bandwidth, SquaredDistances
from equistein.kernels._base import AbstractKernel
from equistein.kernels._radial import AbstractRadialKernel, check_radial
from equistein.kernels.averages._base import AbstractAverage

Average = TypeVar("Average", bound=AbstractAverage)


class AbstractDerivedKernel(AbstractKernel):
    """A kernel whose bandwidth is that of the radial kernel it is made from."""

    base: eqx.AbstractVar[AbstractRadialKernel]

    def __check_init__(self):
        check_radial(type(self).__name__, self.base)

    @property
    def bandwidth(self) -> Bandwidth:
        """That of the base."""
        return self.base.bandwidth

    def with_bandwidth(self, bandwidth: Bandwidth) -> "AbstractDerivedKernel":
        return eqx.tree_at(lambda k: k.base, self, self.base.with_bandwidth(bandwidth))


class AbstractGroupKernel(AbstractDerivedKernel, Generic[Average]):
    """A radial kernel averaged over a group; distances are between orbits."""

    group: eqx.AbstractVar[AbstractGroup]
    average: eqx.AbstractVar[Average]

    def project(self, point: Point) -> Point:
        self.group.check_shape(point.shape)
        return self.average.project(point)

    def check(self, log_density: LogDensity, points: Particles) -> None:
        check_invariance(log_density, self.group, points)

    def _squared_distances(self, particles: Particles) -> SquaredDistances:
        return self.average.squared_orbit_distances(self.base, particles, particles)
