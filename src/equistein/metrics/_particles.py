"""Numbers of a particle system: its distances and its virial."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from equistein._types import LogDensity, Particles, Scalar


def pair_distances(points: Particles) -> Float[Array, "n pair"]:
    """Return the distance of every pair of particles of each cloud.

    Args:
        points: Clouds of shape `(particle, dim)`, stacked on axis 0.
    """
    first, second = jnp.triu_indices(points.shape[1], k=1)
    gaps = points[:, first] - points[:, second]
    return jnp.sqrt(jnp.sum(gaps**2, axis=-1))


def total_variation(
    first: Float[Array, "*n"],
    second: Float[Array, "*m"],
    limits: tuple[float, float],
    num_bins: int = 200,
) -> Scalar:
    r"""The total variation $\frac12 \sum_b |p_b - q_b|$ of two histograms.

    Values outside the limits are counted in two bins of their own. For n independent
    values against the exact law it is about $\sum_b \sqrt{p_b / 2 \pi n}$, not zero:
    compare it with exact samples of the same number.

    Args:
        first: Numbers of one law, such as the pair distances, in any shape.
        second: Numbers of the other.
        limits: The range of the bins.
        num_bins: The number of bins in between, of equal width.
    """
    edges = jnp.linspace(*limits, num_bins + 1)

    def law(values):
        which = jnp.searchsorted(edges.astype(values.dtype), values.ravel(), "right")
        return jnp.bincount(which, length=num_bins + 2) / values.size

    return jnp.sum(jnp.abs(law(first) - law(second))) / 2


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
