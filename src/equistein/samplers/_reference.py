"""The interface of the density that a path of densities begins at."""

import abc
import math
from collections.abc import Callable
from typing import Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jax.core import Tracer

from equistein._gate import gate, keyed
from equistein._numbers import check_integers, check_positive
from equistein._types import Key, Particles, Point, Scalar
from equistein.samplers._scores import everywhere


@runtime_checkable
class Subspace(Protocol):
    """What particles live on: it projects points onto itself."""

    def project(self, point: Point) -> Point: ...


class AbstractReference(eqx.Module):
    """A normalized density with exact samples: where log Z is known to be 0."""

    @abc.abstractmethod
    def log_density(self, point: Point) -> Scalar:
        """Return the normalized log density of one point."""

    @abc.abstractmethod
    def sample(self, key: Key, num: int) -> Particles:
        """Draw `num` independent points from the density."""

    @abc.abstractmethod
    def project(self, point: Point) -> Point:
        """Return the nearest point of the subspace that the density lives on."""


class Projected(eqx.Module):
    """The subspace that a function projects onto."""

    function: Callable[[Point], Point]

    def project(self, point: Point) -> Point:
        return self.function(point)


@gate
class Normal(AbstractReference):
    r"""The isotropic normal density on a subspace, normalized there.

    $$\log p(x) = -\frac{|x - c|^2}{2 \sigma^2} - \frac k2 \log 2 \pi \sigma^2$$

    k is the dimension of the subspace: of the space itself, or (n - 1) d for n
    particles with their center of mass at the origin. The base of annealed importance
    sampling, and the hot end of tempering.

    Args:
        center: The mean $c$, on the subspace.
        scale: The standard deviation $\sigma > 0$ of a coordinate.
        subspace: What projects onto it with a method `project`, such as `PointCloud`.
    """

    center: Point
    scale: Scalar
    subspace: Subspace
    dim: int

    def __init__(
        self,
        center: Point,
        scale: float | Scalar,
        subspace: Subspace = Projected(everywhere),  # noqa: B008
    ):
        if not isinstance(scale, Tracer):
            check_positive("Normal", scale=scale)
            gap = jnp.max(jnp.abs(subspace.project(center) - center))
            if not gap <= 1e-5 * scale:
                raise ValueError(
                    f"Normal needs a `center` that {subspace} leaves where it is, such "
                    "as the origin."
                )
        self.center = center
        self.scale = jnp.asarray(scale, center.dtype)
        self.subspace = subspace
        self.dim = dimension(subspace.project, center.shape)

    def log_density(self, point: Point) -> Scalar:
        center, scale = (c.astype(point.dtype) for c in (self.center, self.scale))
        gap = self.subspace.project(point) - center
        constant = 0.5 * self.dim * jnp.log(2 * jnp.pi * scale**2)
        return -0.5 * jnp.sum((gap / scale) ** 2) - constant

    @keyed
    def sample(self, key: Key, num: int) -> Particles:
        check_integers("`sample`", num=num)
        noise = jr.normal(key, (num, *self.center.shape), self.center.dtype)
        noise = jax.vmap(self.subspace.project)(noise)
        return self.center[None] + self.scale * noise

    def project(self, point: Point) -> Point:
        return self.subspace.project(point)


def fitted_normal(particles: Particles, project: Callable[[Point], Point]) -> Normal:
    """Return the normal density with the mean and the spread of some particles."""
    particles = jax.vmap(project)(particles)
    center = jnp.mean(particles, axis=0)
    squares = jnp.sum((particles - center[None]) ** 2) / len(particles)
    scale = jnp.sqrt(squares / dimension(project, center.shape))
    return Normal(center, scale, Projected(project))


def dimension(project: Callable[[Point], Point], shape: tuple[int, ...]) -> int:
    """Return the dimension of the subspace that points of this shape end on."""
    with jax.ensure_compile_time_eval():
        projection = jax.jacfwd(project)(jnp.zeros(shape))
        return round(float(jnp.trace(projection.reshape(math.prod(shape), -1))))
