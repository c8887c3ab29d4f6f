"""Averages of the Gaussian kernel over a compact group, in closed form."""

import abc

import jax
from jaxtyping import Array, Float

from equistein._types import Point, Scalar
from equistein.kernels._blocks import map_blocks
from equistein.kernels._distances import flatten
from equistein.kernels._radial import AbstractRadialKernel
from equistein.kernels.averages._base import AbstractAverage


class AbstractClosedForm(AbstractAverage):
    """An average of the Gaussian kernel that is known as a formula.

    The base is an `RBF`, of which only the bandwidth is looked at.
    """

    @property
    @abc.abstractmethod
    def num_copies(self) -> int:
        """The number of terms the Gram matrix has for each pair of points."""

    @abc.abstractmethod
    def block_sum(
        self,
        targets: Float[Array, "target dim"],
        sources: Float[Array, "source dim"],
        scores: Float[Array, "source dim"],
        bandwidth: Scalar,
    ) -> Float[Array, "target dim"]:
        """Return the sum of the Stein terms over the sources."""

    @abc.abstractmethod
    def value(self, x: Point, y: Point, bandwidth: Scalar) -> Float[Array, "dim dim"]:
        """Return $K(x, y)$ on flattened points of the subspace."""

    def stein_force(
        self,
        base: AbstractRadialKernel,
        targets: Float[Array, "target *shape"],
        sources: Float[Array, "source *shape"],
        scores: Float[Array, "source *shape"],
    ) -> Float[Array, "target *shape"]:
        bandwidth, project = base.fixed_bandwidth(sources), jax.vmap(self.project)
        x, y, s = (flatten(project(z)) for z in (targets, sources, scores))
        total = map_blocks(
            lambda rows: self.block_sum(rows, y, s, bandwidth),
            x,
            len(y) * self.num_copies,
        )
        return (total / len(y)).reshape(targets.shape)

    def matrix(
        self, base: AbstractRadialKernel, x: Point, y: Point
    ) -> Float[Array, "dim dim"]:
        x, y = self.project(x), self.project(y)
        matrix = self.value(x, y, base.fixed_bandwidth(x))
        project = jax.vmap(lambda row: self.project(row.reshape(x.shape)))
        return flatten(project(flatten(project(matrix)).T)).T
