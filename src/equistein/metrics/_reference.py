"""Normalized densities that annealed importance sampling begins at."""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr

from equistein._arrays import check_num
from equistein._numbers import check_positive
from equistein._types import Key, Particles, Point, Scalar
from equistein.groups import AbstractGroup, Trivial


class AbstractReference(eqx.Module):
    """A normalized density with a sampler."""

    @abc.abstractmethod
    def log_density(self, point: Point) -> Scalar:
        """Return the normalized log density of one point."""

    @abc.abstractmethod
    def sample(self, key: Key, num: int) -> Particles:
        """Draw `num` independent points from the density."""

    @abc.abstractmethod
    def project(self, point: Point) -> Point:
        """Return the nearest point of the subspace that the density lives on."""


class Normal(AbstractReference):
    r"""The isotropic normal density on a group's subspace, normalized there.

    $$\log p(x) = -\frac{|x - c|^2}{2 \sigma^2} - \frac k2 \log 2 \pi \sigma^2$$

    k is the dimension of the subspace: of the space itself, or (n - 1) d for n
    particles with their center of mass at the origin. The base of annealed importance
    sampling.

    Args:
        center: The mean $c$, on the subspace.
        scale: The standard deviation $\sigma > 0$ of a coordinate.
        group: The symmetry, which must leave the mean where it is.

    Raises:
        ValueError: If the scale is not positive, or the group moves the mean.
    """

    center: Point
    scale: Scalar
    group: AbstractGroup
    dim: int

    def __init__(
        self,
        center: Point,
        scale: float | Scalar,
        group: AbstractGroup = Trivial(),  # noqa: B008
    ):
        check_positive("Normal", scale=scale)
        group.check_shape(center.shape)
        distance, dim = _moved_and_dim(group, center)
        if not bool(distance <= 1e-5 * scale):
            raise ValueError(
                f"Normal needs a `center` that {group} leaves where it is, such as the "
                "origin."
            )
        self.center = center
        self.scale = jnp.asarray(scale, center.dtype)
        self.group = group
        self.dim = round(float(dim))

    def log_density(self, point: Point) -> Scalar:
        center, scale = (c.astype(point.dtype) for c in (self.center, self.scale))
        gap = self.group.project(point) - center
        constant = 0.5 * self.dim * jnp.log(2 * jnp.pi * scale**2)
        return -0.5 * jnp.sum((gap / scale) ** 2) - constant

    def sample(self, key: Key, num: int) -> Particles:
        check_num(num)
        noise = jr.normal(key, (num, *self.center.shape), self.center.dtype)
        noise = jax.vmap(self.group.project)(noise)
        return self.center[None] + self.scale * noise

    def project(self, point: Point) -> Point:
        return self.group.project(point)


@eqx.filter_jit
def _moved_and_dim(group: AbstractGroup, center: Point) -> tuple[Scalar, Scalar]:
    """Return how far elements move a point, and the dimension of the subspace."""
    # A random element moves every point that is not fixed by all of them.
    elements = group.sample(jr.key(0), 3)
    moved = jax.vmap(lambda g: group.act(g, group.project(center)))(elements)
    projection = jax.jacfwd(group.project)(jnp.zeros_like(center))
    dim = jnp.trace(projection.reshape(center.size, -1))
    return jnp.max(jnp.abs(moved - center[None])), dim
