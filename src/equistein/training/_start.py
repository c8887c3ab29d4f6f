"""Where particles start: a box around the data."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float

from equistein._types import Key, Particles, Point, Scalar
from equistein.groups import AbstractGroup, Trivial


class Box(eqx.Module):
    """The uniform law on a cube that holds the data, on the group's subspace.

    Centred at the origin, which a group's action keeps, or at the data's mean if there
    is no symmetry.

    Args:
        data: The data, stacked on axis 0.
        group: The symmetry.
    """

    center: Float[Array, "..."]
    reach: Scalar
    group: AbstractGroup

    def __init__(self, data: Particles, group: AbstractGroup):
        points = jax.vmap(group.project)(data)
        center = jnp.zeros_like(points[0])
        if isinstance(group, Trivial):
            center = jnp.mean(points, axis=0)
        self.center = center
        self.reach = jnp.max(jnp.abs(points - center[None]))
        self.group = group

    def sample(self, key: Key, num: int) -> Particles:
        """Draw `num` points."""
        shape = (num, *self.center.shape)
        offset = jr.uniform(key, shape, self.center.dtype, minval=-1.0, maxval=1.0)
        points: Point = self.center[None] + self.reach * offset
        return jax.vmap(self.group.project)(points)
