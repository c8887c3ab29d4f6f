"""Planar densities that are known, and those of a family likeliest to give points."""

import dataclasses
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float

from equistein._types import Key, Particles, Point
from equistein.experiments.learned._plane import LogDensities
from equistein.groups import AbstractGroup
from equistein.targets import RotatedGaussians, Shells


@dataclasses.dataclass(frozen=True)
class Law:
    """A density that is known.

    Attributes:
        log_densities: Normalized ones, of all and of each class.
        samples: From a key and a number, samples of all, and of each class.
    """

    log_densities: LogDensities
    samples: Callable[[Key, int], list[Particles]]


def law_of_shells(shells: Sequence[Shells], weights: Sequence[float]) -> Law:
    """Return a mixture of single shells with weights."""

    def log_densities(point: Point) -> Float[Array, " density"]:
        parts = [shell.log_density(point) - shell.log_normalizer for shell in shells]
        logs = jnp.log(jnp.asarray(weights, point.dtype))
        return logsumexp(jnp.stack(parts).astype(point.dtype) + logs)[None]

    def samples(key: Key, num: int) -> list[Particles]:
        which_key, *keys = jr.split(key, 1 + len(shells))
        pairs = zip(shells, keys, strict=True)
        drawn = jnp.stack([shell.sample(key, num) for shell, key in pairs])
        chances = jnp.log(jnp.asarray(weights, drawn.dtype))
        which = jr.categorical(which_key, chances, shape=(num,))
        return [drawn[which, jnp.arange(num)]]

    return Law(log_densities, samples)


def likeliest_gaussians(
    group: AbstractGroup, near: Point, points: Particles
) -> RotatedGaussians:
    """Return the copies of a Gaussian that are likeliest to give some points.

    Its mean and covariance are those of the points, each moved by the group to where it
    is nearest to `near`: exact as far as the copies do not overlap.
    """
    orbits = jax.vmap(group.orbit)(points)
    nearest = jnp.argmin(jnp.sum((orbits - near[None, None]) ** 2, axis=-1), axis=1)
    moved = np.asarray(orbits[jnp.arange(len(points)), nearest], np.float64)
    mean, covariance = moved.mean(axis=0), np.cov(moved.T, bias=True)
    return RotatedGaussians(group, jnp.asarray(mean), jnp.asarray(covariance))


def likeliest_shell(points: Particles) -> Shells:
    r"""Return the circle that is likeliest to give some points of the plane.

    Of a narrow one $\log p(x) = \log \mathcal N(\rho; r, w^2) - \log 2 \pi r$ with
    $\rho = |x|$, which is largest where $r^2 - \bar\rho\, r + w^2 = 0$ and $w^2$ is the
    mean of $(\rho - r)^2$.
    """
    distances = np.linalg.norm(np.asarray(points, np.float64), axis=1)
    mean = radius = distances.mean()
    squared = distances.var()
    for _ in range(50):
        radius = (mean + np.sqrt(max(mean**2 - 4 * squared, 0))) / 2
        squared = np.mean((distances - radius) ** 2)
    return Shells((float(radius),), float(np.sqrt(squared)), points.shape[1])
