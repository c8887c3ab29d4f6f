"""Pair distances and the virial of particle systems."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from equistein._gate import finite_gate
from equistein._types import LogDensity, Particles, Scalar


@finite_gate
def pair_distances(points: Particles) -> Float[Array, "n pair"]:
    """Return the distance of every pair of particles of each cloud.

    Args:
        points: Clouds of shape `(particle, dim)`, stacked on axis 0.
    """
    first, second = jnp.triu_indices(points.shape[1], k=1)
    gaps = points[:, first] - points[:, second]
    return jnp.sqrt(jnp.sum(gaps**2, axis=-1))


@finite_gate
def virial(log_density: LogDensity, points: Particles) -> Scalar:
    r"""The mean of $-x \cdot \nabla \log p(x)$.

    For exact samples it is the dimension of the space they live on: $(n - 1) d$ for n
    particles with their center of mass at the origin. A sum over a heavy tail: look at
    it with some thousands of samples.

    Args:
        log_density: The unnormalized log density of one point.
        points: The samples, stacked on axis 0.
    """
    scores = jax.vmap(jax.grad(log_density))(points)
    return -jnp.sum(points * scores) / len(points)
