"""Averages of the Gaussian kernel over a compact group, in closed form."""

import abc

import jax
from jaxtyping import Array, Float

from equistein._types import Point, Scalar
from equistein.kernels._pairs import flatten, map_blocks, SourceRows, TargetRows
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
