"""A box around the data."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float

from equistein._gate import gate, keyed
from equistein._types import Key, Particles, Point, Scalar
from equistein.groups import AbstractGroup
from equistein.training.initial._base import AbstractInitial


@gate
class Box(AbstractInitial):
    """The uniform distribution on a cube that holds the data, on the group's subspace.

    Centered at the origin, which a group's action keeps, or at the data's mean if there
    is no symmetry.

    Args:
        data: The data, stacked on axis 0.
        group: The symmetry.
    """

    center: Float[Array, "..."]
    reach: Scalar
    group: AbstractGroup

    def __init__(self, data: Particles, group: AbstractGroup):
        self.center, self.reach = _center_and_reach(data, group)
        self.group = group

    @keyed
    def sample(self, key: Key, num: int, label: int | None = None) -> Particles:
        shape = (num, *self.center.shape)
        offset = jr.uniform(key, shape, self.center.dtype, minval=-1.0, maxval=1.0)
        points: Point = self.center[None] + self.reach * offset
        return jax.vmap(self.group.project)(points)


@eqx.filter_jit
def _center_and_reach(data: Particles, group: AbstractGroup) -> tuple[Point, Scalar]:
    points = jax.vmap(group.project)(data)
    center = jnp.zeros_like(points[0])
    if group.order == 1:
        center = jnp.mean(points, axis=0)
    return center, jnp.max(jnp.abs(points - center[None]))
