"""Data with copies that a group moves, for models that do not know it."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from equistein._types import Key, Particles
from equistein.groups import AbstractGroup


def augmented(
    key: Key, group: AbstractGroup, data: Particles, copies: int
) -> Float[Array, "copy *shape"]:
    """Return `copies` of each point, each moved by a random element of a group."""
    points = jnp.repeat(data, copies, axis=0)
    return jax.vmap(group.act)(group.sample(key, len(points)), points)
