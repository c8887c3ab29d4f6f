"""What averages over point clouds share: the copies under swaps of like particles."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from equistein._types import Point
from equistein.groups import PointCloud
from equistein.kernels.averages._closed_form import AbstractClosedForm

MAX_PERMUTATIONS = 120  # five like particles


class AbstractCloudAverage(AbstractClosedForm):
    """A mean over the turns of a point cloud and the swaps of its like particles."""

    group: PointCloud

    def project(self, point: Point) -> Point:
        return self.group.project(point)


def enumerable(group: PointCloud) -> bool:
    """Whether the swaps are few enough to run over all of them."""
    return group.num_permutations <= MAX_PERMUTATIONS


def permuted(
    group: PointCloud, rows: Float[Array, "n dim"]
) -> Float[Array, "copy dim"]:
    """Return all permutations of flattened clouds, one after the other."""
    clouds = rows.reshape(len(rows), -1, group.dim)
    copies = jnp.swapaxes(clouds[:, group.permutations()], 0, 1)
    return copies.reshape(-1, rows.shape[1])
