"""What averages over point clouds share: the copies under swaps of like particles."""

import abc

import jax.numpy as jnp
from jaxtyping import Array, Float

from equistein._types import Point
from equistein.groups import PointCloud
from equistein.kernels._pairs import (
    Pairs,
    SourceRows,
    Sources,
    squared_norms,
    TargetRows,
    Targets,
)
from equistein.kernels._radial import AbstractRadialKernel
from equistein.kernels.averages._closed_form import AbstractClosedForm

MAX_PERMUTATIONS = 120  # five like particles


class AbstractCloudAverage(AbstractClosedForm):
    """A mean over rotations of a point cloud and swaps of like particles."""

    group: PointCloud

    @abc.abstractmethod
    def copies(self, rows: SourceRows) -> Float[Array, "copy dim"]:
        """Return the copies of the rows that are enumerated, one after the other."""

    @abc.abstractmethod
    def overlaps(self, x: TargetRows, copies: SourceRows) -> Pairs:
        """Return the largest inner products over the rotations of the copies."""

    def project(self, point: Point) -> Point:
        return self.group.project(point)

    def squared_orbit_distances(
        self, base: AbstractRadialKernel, x: Targets, y: Sources
    ) -> Pairs:
        rows, others = self.rows(x), self.rows(y)
        overlaps = self.overlaps(rows, self.copies(others))
        largest = jnp.max(overlaps.reshape(len(x), -1, len(y)), axis=1)
        return jnp.maximum(squared_norms(rows, others) - 2 * largest, 0)


def enumerable(group: PointCloud) -> bool:
    """Whether the swaps are few enough to run over all of them."""
    return group.num_permutations <= MAX_PERMUTATIONS


def permuted(group: PointCloud, rows: SourceRows) -> Float[Array, "copy dim"]:
    """Return all permutations of flattened clouds, one after the other."""
    clouds = rows.reshape(len(rows), -1, group.dim)
    copies = jnp.swapaxes(clouds[:, group.permutations()], 0, 1)
    return copies.reshape(-1, rows.shape[1])
