"""Kernels of the distance: Gaussian, also periodic, and inverse multiquadric."""

import abc
from typing import TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from equistein._check_arguments import check_arguments
from equistein._products import matmul
from equistein._types import Point, Scalar
from equistein.features import Periodic
from equistein.kernels._bandwidth import (
    AbstractBandwidth,
    Bandwidth,
    Median,
    SquaredDistances,
)
from equistein.kernels._base import AbstractKernel, AbstractScalarKernel, Prepared
from equistein.kernels._pairs import (
    centered,
    differences_are_faster,
    flatten,
    map_blocks,
    Pairs,
    SourceRows,
    Sources,
    squared_distances,
    sum_blocks,
    TargetRows,
    Targets,
)

Squared: TypeAlias = Float[Array, "*pairs"]


class AbstractRadialKernel(AbstractScalarKernel):
    r"""A kernel $k(x, y) = \kappa(|x - y|^2)$ with a bandwidth.

    Its force is a product of the Gram matrix with the scores and the sources.

    Jointly invariant, $k(gx, gy) = k(x, y)$, under every group that preserves
    these distances (of what `embed` returns), as averages over a group require.
    """

    @abc.abstractmethod
    def profile(self, squared: Squared) -> tuple[Squared, Squared]:
        r"""Return $\kappa$ and its derivative $\kappa'$ at squared distances."""

    def __call__(self, x: Point, y: Point) -> Scalar:
        return self.profile(jnp.sum((self.embed(x) - self.embed(y)) ** 2))[0]

    def force(self, targets: Targets, prepared: Prepared) -> Targets:
        points, scores = prepared.points, prepared.scores
        return self._force_about(points, targets, points, scores)

    def _force_about(
        self, particles: Float[Array, "particle *shape"], targets: Targets,
        sources: Sources, scores: Sources,
    ) -> Targets:  # fmt: skip
        """Return the force, shifting points by the mean of `particles` for accuracy."""
        x, y = centered(flatten(targets), flatten(sources), flatten(particles))
        total = sum_blocks(self._block_sum, x, y, flatten(scores))
        return (total / len(y)).reshape(targets.shape)

    def embed(self, points: Float[Array, "*batch"]) -> Float[Array, "component *batch"]:
        """Return the points as the kernel compares them, periodic ones on circles."""
        return points[None]

    def pull_back(
        self, points: Float[Array, "*batch"], vectors: Float[Array, "component *batch"]
    ) -> Float[Array, "*batch"]:
        r"""Return $J^\top v$ for vectors where `embed` puts the points."""
        del points
        return vectors[0]

    def fixed_bandwidth(self, like: Array) -> Scalar:
        """Return the bandwidth, which must be a number, in the precision of `like`."""
        if isinstance(self.bandwidth, AbstractBandwidth):
            raise ValueError(
                f"This kernel's `bandwidth` is the rule {self.bandwidth}, which needs "
                "particles: call kernel.with_bandwidth(measured_bandwidth(kernel, "
                "particles)) first. SVGD does so."
            )
        return jnp.asarray(self.bandwidth, like.dtype)

    def _block_sum(
        self, targets: TargetRows, sources: SourceRows, scores: SourceRows
    ) -> TargetRows:
        """Return the sum of the Stein terms over the sources, all pairs at once."""
        value, slope = self.profile(squared_distances(targets, sources))
        # grad_y k = 2 kappa' (y - x)
        ones = jnp.ones((len(sources), 1), sources.dtype)
        pull = matmul(slope, jnp.concatenate([sources, ones], axis=1))
        return matmul(value, scores) + 2 * (pull[:, :-1] - pull[:, -1:] * targets)


@check_arguments
class RBF(AbstractRadialKernel):
    r"""The Gaussian kernel.

    $$k(x, y) = \exp\bigl(-|x - y|^2 / 2 h^2\bigr)$$

    BlackJAX's `length_scale` is $2 h^2$.

    Args:
        bandwidth: The length $h > 0$, in the units of the points, or a rule for it.

    References:
        Liu and Wang (2016), Stein Variational Gradient Descent, section 5.
    """

    bandwidth: Scalar | AbstractBandwidth

    def __init__(self, bandwidth: Bandwidth | None = None):
        self.bandwidth = as_bandwidth("RBF", bandwidth)

    def profile(self, squared):
        return gaussian(squared, self.fixed_bandwidth(squared))

    def _block_sum(self, targets, sources, scores):
        precision = 1 / self.fixed_bandwidth(targets) ** 2
        if differences_are_faster(targets, sources):
            gram = jnp.exp(-0.5 * precision * squared_distances(targets, sources))
        else:
            gram = jnp.exp(_exponents(precision, targets, sources))
        # grad_y k = k (x - y) / h^2, so all three sums come from one product.
        ones = jnp.full((len(sources), 1), precision)
        pulls = jnp.concatenate([scores - precision * sources, ones], axis=1)
        sums = matmul(gram, pulls)
        return sums[:, :-1] + sums[:, -1:] * targets


def _exponents(precision: Scalar, x: TargetRows, y: SourceRows) -> Pairs:
    r"""Return $-|x_i - y_j|^2 / 2 h^2$ by one matmul, with the squares of y in it."""
    half = lambda rows: 0.5 * precision * jnp.sum(rows**2, axis=1, keepdims=True)
    left = jnp.concatenate([jnp.ones((len(x), 1), x.dtype), precision * x], axis=1)
    product = matmul(left, jnp.concatenate([-half(y), y], axis=1).T)
    return jnp.minimum(product - half(x), 0)


@check_arguments
class IMQ(AbstractRadialKernel):
    r"""The inverse multiquadric kernel.

    $$k(x, y) = \bigl(1 + |x - y|^2 / 2 h^2\bigr)^{-1/2}$$

    Its tails reach far, so distant particles still repel; with it the kernel Stein
    discrepancy detects non-convergence (the Gaussian's does not in high dimension).

    Args:
        bandwidth: The length $h > 0$, in the units of the points, or a rule for it.

    References:
        Gorham and Mackey (2017), Measuring Sample Quality with Kernels.
    """

    bandwidth: Scalar | AbstractBandwidth

    def __init__(self, bandwidth: Bandwidth | None = None):
        self.bandwidth = as_bandwidth("IMQ", bandwidth)

    def profile(self, squared):
        inverse = 0.5 / self.fixed_bandwidth(squared) ** 2
        value = jax.lax.rsqrt(1 + squared * inverse)
        return value, -0.5 * inverse * value**3


def gaussian(squared: Squared, bandwidth: Scalar) -> tuple[Squared, Squared]:
    """Return the Gaussian of squared distances, and its derivative in them."""
    inverse = 0.5 / bandwidth**2
    value = jnp.exp(-squared * inverse)
    return value, -inverse * value


def as_bandwidth(name: str, bandwidth) -> Scalar | AbstractBandwidth:
    """Return a bandwidth as a positive number or a rule, by default the median's."""
    if bandwidth is None:
        return Median()
    if isinstance(bandwidth, AbstractBandwidth):
        return bandwidth
    number = isinstance(bandwidth, int | float)
    value = jnp.asarray(float(bandwidth) if number else bandwidth)
    good = value.shape == () and jnp.issubdtype(value.dtype, jnp.floating)
    message = (
        f"{name} needs `bandwidth`, a positive length in the units of the points or a "
        "rule such as Median()"
    )
    if good and not number and isinstance(value, Tracer):
        return eqx.error_if(value, ~(value > 0), f"{message}.")
    if not good or not 0 < bandwidth < float("inf"):
        raise ValueError(f"{message}, but got {bandwidth!r}.")
    return value


class AbstractDerivedKernel(AbstractKernel):
    """A kernel whose bandwidth is that of the radial kernel it is made from."""

    base: eqx.AbstractVar[AbstractRadialKernel]

    @property
    def bandwidth(self) -> Bandwidth:
        """That of the base."""
        return self.base.bandwidth

    def with_bandwidth(self, bandwidth: Bandwidth) -> "AbstractDerivedKernel":
        return eqx.tree_at(lambda k: k.base, self, self.base.with_bandwidth(bandwidth))


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
        wraps, radii, angles = self._on_circles(points)
        x = jnp.where(wraps, radii * jnp.cos(angles), points)
        return jnp.stack([x, jnp.where(wraps, radii * jnp.sin(angles), 0)])

    def pull_back(self, points: Array, vectors: Array) -> Array:
        wraps, _, angles = self._on_circles(points)
        along = jnp.cos(angles) * vectors[1] - jnp.sin(angles) * vectors[0]
        return jnp.where(wraps, along, vectors[0])

    def _on_circles(self, points: Array) -> tuple[np.ndarray, Array, Array]:
        """Return which coordinates wrap, the radii, and the angles, 0 elsewhere."""
        wraps, periods = self.periodic.circles(points)
        radii = periods / (2 * jnp.pi)
        return wraps, radii, jnp.where(wraps, points / radii, 0)

    def project(self, point: Point) -> Point:
        self.periodic.group(point.shape)
        return point

    def _squared_distances(self, particles: Sources) -> SquaredDistances:
        rows = self._circles(particles)
        return squared_distances(*centered(rows, rows, rows))

    def _circles(self, particles: Sources) -> Float[Array, "n two_dim"]:
        return flatten(jnp.moveaxis(self.embed(particles), 0, 1))
