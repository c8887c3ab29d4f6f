"""Interfaces for kernels: what turns scores into Stein forces."""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from equistein._types import LogDensity, Particles, Point, Scalar
from equistein.kernels._bandwidth import AbstractBandwidth


class AbstractKernel(eqx.Module):
    r"""A positive definite kernel, scalar or matrix-valued.

    SVGD asks it for one thing, the Stein force on targets x from sources y with
    scores s,

    $$\psi(x) = \frac1m \sum_j K(x, y_j)\, s_j + \mathrm{div}_{y_j} K(x, y_j).$$
    """

    @abc.abstractmethod
    def stein_force(
        self,
        targets: Float[Array, "target *shape"],
        sources: Float[Array, "source *shape"],
        scores: Float[Array, "source *shape"],
    ) -> Float[Array, "target *shape"]:
        r"""Return $\psi$ at each target, the mean over the sources."""

    @abc.abstractmethod
    def matrix(self, x: Point, y: Point) -> Float[Array, "dim dim"]:
        """Return $K(x, y)$ on flattened points; $k(x, y) I$ for a scalar kernel."""

    @property
    @abc.abstractmethod
    def rule(self) -> AbstractBandwidth | None:
        """The rule that sets the bandwidth, or None when it is a number."""

    @abc.abstractmethod
    def length(self, particles: Particles) -> Scalar:
        """Return the bandwidth: the number, or what the rule gives for `particles`."""

    @abc.abstractmethod
    def with_length(self, length: Scalar) -> "AbstractKernel":
        """Return this kernel with the number `length` for its bandwidth."""

    @abc.abstractmethod
    def project(self, point: Point) -> Point:
        """Return the nearest point of the subspace the particles live on."""

    @abc.abstractmethod
    def check_shape(self, shape: tuple[int, ...]) -> None:
        """Raise `ValueError` unless the kernel is defined on points of this shape."""

    @abc.abstractmethod
    def check_target(self, log_density: LogDensity, points: Particles) -> None:
        """Raise `InvarianceError` if the density lacks the kernel's symmetry."""


class AbstractScalarKernel(AbstractKernel):
    """A real-valued kernel: $K(x, y) = k(x, y) I$."""

    @abc.abstractmethod
    def __call__(self, x: Point, y: Point) -> Scalar:
        """Return $k(x, y)$."""

    def matrix(self, x: Point, y: Point) -> Float[Array, "dim dim"]:
        return self(x, y) * jnp.eye(x.size, dtype=x.dtype)


def flatten(particles: Float[Array, "n *shape"]) -> Float[Array, "n dim"]:
    """Return the particles as rows."""
    return particles.reshape(len(particles), -1)


def squared_distances(
    x: Float[Array, "target dim"], y: Float[Array, "source dim"]
) -> Float[Array, "target source"]:
    r"""Return $|x_i - y_j|^2$ by one matmul.

    Center the points first: the terms cancel, and in float32 a cloud far from the
    origin would lose all digits.
    """
    norms = jnp.sum(x**2, axis=1)[:, None] + jnp.sum(y**2, axis=1)[None, :]
    return jnp.maximum(norms - 2 * x @ y.T, 0)


def centered(
    x: Float[Array, "target dim"], y: Float[Array, "source dim"]
) -> tuple[Float[Array, "target dim"], Float[Array, "source dim"]]:
    """Return both clouds with the mean of the targets at the origin.

    Of the sources only those near the targets count; a group's copies of a cloud far
    from the origin have their own mean where no particle is.
    """
    mean = jax.lax.stop_gradient(jnp.mean(x, axis=0, keepdims=True))
    return x - mean, y - mean
