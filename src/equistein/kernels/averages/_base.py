"""Interfaces for averages over a group."""

import abc

import equinox as eqx
import jax
from jaxtyping import Array, Float

from equistein._types import Particles, Point, Scalar
from equistein.kernels._pairs import (
    flatten,
    map_blocks,
    Pairs,
    SourceRows,
    Sources,
    TargetRows,
    Targets,
)
from equistein.kernels._radial import AbstractRadialKernel


class AbstractAverage(eqx.Module):
    r"""The mean $K(x, y) = \int k(x, g y)\, R_g\, dg$ of a radial kernel over a group.

    Everything lives on the group's subspace: points and scores are projected onto it.
    """

    @abc.abstractmethod
    def stein_force(
        self,
        base: AbstractRadialKernel,
        targets: Targets,
        sources: Sources,
        scores: Sources,
    ) -> Targets:
        """Return the Stein force of K, the mean over the sources."""

    @abc.abstractmethod
    def matrix(
        self, base: AbstractRadialKernel, x: Point, y: Point
    ) -> Float[Array, "dim dim"]:
        """Return $K(x, y)$ on flattened points."""

    @abc.abstractmethod
    def squared_orbit_distances(
        self, base: AbstractRadialKernel, x: Targets, y: Sources
    ) -> Pairs:
        r"""Return $\min_g |x_i - g y_j|^2$, in the distance of the base."""

    @abc.abstractmethod
    def project(self, point: Point) -> Point:
        """Return the nearest point of the group's subspace, or raise `ValueError`."""

    def rows(self, points: Particles) -> Float[Array, "particle dim"]:
        """Return the projected points, flattened."""
        return flatten(jax.vmap(self.project)(points))


class AbstractClosedForm(AbstractAverage):
    """A formula for the average of an `RBF`, of which only the bandwidth is used."""

    @property
    @abc.abstractmethod
    def num_copies(self) -> int:
        """The number of terms the Gram matrix has for each pair of points."""

    @abc.abstractmethod
    def block_sum(
        self,
        targets: TargetRows,
        sources: SourceRows,
        scores: SourceRows,
        bandwidth: Scalar,
    ) -> TargetRows:
        """Return the sum of the Stein terms over the sources."""

    @abc.abstractmethod
    def value(self, x: Point, y: Point, bandwidth: Scalar) -> Float[Array, "dim dim"]:
        """Return $K(x, y)$ on flattened points of the subspace."""

    def stein_force(self, base, targets, sources, scores):
        bandwidth = base.fixed_bandwidth(sources)
        x, y, s = map(self.rows, (targets, sources, scores))
        block = lambda rows: self.block_sum(rows, y, s, bandwidth)
        total = map_blocks(block, x, len(y) * self.num_copies)
        return (total / len(y)).reshape(targets.shape)

    def matrix(self, base, x, y):
        x, y = self.project(x), self.project(y)
        matrix = self.value(x, y, base.fixed_bandwidth(x))
        project = jax.vmap(lambda row: self.project(row.reshape(x.shape)))
        return flatten(project(flatten(project(matrix)).T)).T
