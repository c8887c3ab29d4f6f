"""The Gaussian kernel on circles and in periodic boxes."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from equistein._check_arguments import check_arguments
from equistein._products import matmul
from equistein._types import Point, Scalar
from equistein.features import Periodic
from equistein.kernels._bandwidth import AbstractBandwidth, Bandwidth, SquaredDistances
from equistein.kernels._pairs import (
    centered,
    flatten,
    map_blocks,
    Sources,
    squared_distances,
)
from equistein.kernels._radial import AbstractRadialKernel, as_bandwidth, gaussian


@check_arguments
class PeriodicRBF(AbstractRadialKernel):
    r"""The Gaussian kernel of the straight distance between points on their circles.

    $$k(x, y) = \exp\Bigl(-\frac{|F(x) - F(y)|^2}{2 h^2}\Bigr)
      = \prod_i \exp\Bigl(-\frac{r_i^2}{h^2} \bigl[1 - \cos \tfrac{x_i - y_i}{r_i}\bigr]
        \Bigr)$$

    where F are the features of `Periodic`, r the radii of the circles, and coordinates
    that are not periodic enter as in `RBF`.

    Args:
        bandwidth: The length $h > 0$, in the units of the points, or a rule for it; the
            median rule by default.
        periodic: The periodic coordinates, and their periods.
    """

    bandwidth: Scalar | AbstractBandwidth
    periodic: Periodic

    def __init__(self, bandwidth: Bandwidth | None = None, *, periodic: Periodic):
        self.bandwidth = as_bandwidth("PeriodicRBF", bandwidth)
        self.periodic = periodic

    def profile(self, squared):
        return gaussian(squared, self.fixed_bandwidth(squared))

    def __call__(self, x: Point, y: Point) -> Scalar:
        gap = self.embed(x) - self.embed(y)
        return self.profile(jnp.sum(gap**2))[0]

    def _force_about(self, particles, targets, sources, scores):
        del particles
        inverse = 1 / self.fixed_bandwidth(targets) ** 2
        y, s = self._circles(sources), flatten(scores)

        def block(rows: Float[Array, "block dim"]) -> Float[Array, "block dim"]:
            points = rows.reshape(-1, *targets.shape[1:])
            x = self._circles(points)
            gram = self.profile(squared_distances(*centered(x, y, y)))[0]
            pull = jnp.sum(gram, axis=1)[:, None] * x - matmul(gram, y)
            charts = jnp.moveaxis(pull.reshape(len(x), 2, *targets.shape[1:]), 1, 0)
            along = flatten(self.pull_back(points, charts))
            return matmul(gram, s) + inverse * along

        total = map_blocks(block, flatten(targets), len(sources))
        return (total / len(sources)).reshape(targets.shape)

    def embed(self, points: Array) -> Array:
        """Return each coordinate as two: on its circle, or itself and zero."""
        wraps, radii = self._circle_sizes(points)
        angles = jnp.where(wraps, points / radii, 0)
        x = jnp.where(wraps, radii * jnp.cos(angles), points)
        return jnp.stack([x, jnp.where(wraps, radii * jnp.sin(angles), 0)])

    def pull_back(self, points: Array, vectors: Array) -> Array:
        wraps, radii = self._circle_sizes(points)
        angles = jnp.where(wraps, points / radii, 0)
        along = jnp.cos(angles) * vectors[1] - jnp.sin(angles) * vectors[0]
        return jnp.where(wraps, along, vectors[0])

    def _circle_sizes(self, like: Array) -> tuple[np.ndarray, Array]:
        """Return which coordinates wrap, and the radii, 1 for those that do not."""
        self.periodic.group(like.shape)
        wraps = np.isfinite(self.periodic.periods)
        radii = np.where(wraps, self.periodic.periods, 1) / (2 * np.pi)
        wraps, radii = (np.broadcast_to(each, like.shape) for each in (wraps, radii))
        return wraps, jnp.asarray(radii, like.dtype)

    def project(self, point: Point) -> Point:
        self.periodic.group(point.shape)
        return point

    def _squared_distances(self, particles: Sources) -> SquaredDistances:
        rows = self._circles(particles)
        return squared_distances(*centered(rows, rows, rows))

    def _circles(self, particles: Sources) -> Float[Array, "n two_dim"]:
        return flatten(jnp.moveaxis(self.embed(particles), 0, 1))
