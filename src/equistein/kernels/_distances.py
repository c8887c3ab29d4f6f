"""Distances of all pairs of points, by one matmul."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from equistein.kernels._types import Pairs, SourceRows, TargetRows


def flatten(particles: Float[Array, "n *shape"]) -> Float[Array, "n dim"]:
    """Return the particles as rows."""
    return particles.reshape(len(particles), -1)


def squared_distances(x: TargetRows, y: SourceRows) -> Pairs:
    r"""Return $|x_i - y_j|^2$ by one matmul.

    Center the points first: the terms cancel, and in float32 a cloud far from the
    origin would lose all digits.
    """
    return jnp.maximum(squared_norms(x, y) - 2 * x @ y.T, 0)


def squared_norms(x: TargetRows, y: SourceRows) -> Pairs:
    """Return $|x_i|^2 + |y_j|^2$."""
    return jnp.sum(x**2, axis=1)[:, None] + jnp.sum(y**2, axis=1)[None, :]


def centered(x: TargetRows, y: SourceRows) -> tuple[TargetRows, SourceRows]:
    """Return both clouds with the mean of the targets at the origin.

    Of the sources only those near the targets count; a group's copies of a cloud far
    from the origin have their own mean where no particle is.
    """
    mean = jax.lax.stop_gradient(jnp.mean(x, axis=0, keepdims=True))
    return x - mean, y - mean
