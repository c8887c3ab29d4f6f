"""Flat points in units of a posterior's widths, and a wide density of these."""

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float

from equistein._gate import gate, keyed
from equistein._types import Key, LogDensity, Scalar
from equistein.posteriors._parameters import Parameters
from equistein.samplers import AbstractReference


class Coordinates(eqx.Module):
    r"""Coordinates $z = (u - c) / h$ of flat points u.

    Where the center and the widths are equal for exchangeable coordinates, the group
    acts on z as on u.
    """

    center: Float[Array, " dim"]
    width: Float[Array, " dim"]

    def forward(self, point: Float[Array, "*batch dim"]) -> Float[Array, "*batch dim"]:
        """Return the coordinates of flat points."""
        return (point - _under(self.center, point)) / _under(self.width, point)

    def inverse(self, z: Float[Array, "*batch dim"]) -> Float[Array, "*batch dim"]:
        """Return the flat points of coordinates."""
        return _under(self.center, z) + _under(self.width, z) * z


class StandardizedDensity(eqx.Module):
    r"""The log density of the coordinates, $\log p(u(z)) + \sum_i \log h_i$.

    It integrates to the same evidence.
    """

    log_density: LogDensity
    coordinates: Coordinates

    def __call__(self, z: Float[Array, " dim"]) -> Scalar:
        value = self.log_density(self.coordinates.inverse(z))
        return value + jnp.sum(jnp.log(self.coordinates.width))


def _under(numbers: Float[Array, " dim"], batch: Array) -> Array:
    return jnp.expand_dims(numbers, tuple(range(batch.ndim - 1)))


@gate
class WideReference(AbstractReference):
    r"""Normal coordinates, and uniform ones where they are periodic.

    $$\log b(z) = \sum_{i \in N} \log \mathcal N(z_i; 0, \sigma_i^2)
      - \sum_{i \notin N} \log P_i$$

    Normalized on the torus where some are periodic.

    Args:
        width: The standard deviation $\sigma$ of each coordinate.
        period: The period P of each coordinate, infinite for normal ones.
    """

    width: Float[Array, " dim"]
    period: Float[Array, " dim"]

    def log_density(self, point: Float[Array, " dim"]) -> Scalar:
        width, period = self.width.astype(point.dtype), self.period.astype(point.dtype)
        wraps = jnp.isfinite(period)
        normal = -0.5 * (point / width) ** 2 - 0.5 * jnp.log(2 * jnp.pi * width**2)
        return jnp.sum(jnp.where(wraps, -jnp.log(jnp.where(wraps, period, 1)), normal))

    @keyed
    def sample(self, key: Key, num: int) -> Float[Array, "particle dim"]:
        normal_key, uniform_key = jr.split(key)
        shape, dtype = (num, len(self.width)), self.width.dtype
        wraps = jnp.isfinite(self.period)
        normal = self.width[None] * jr.normal(normal_key, shape, dtype)
        uniform = jr.uniform(uniform_key, shape, dtype)
        uniform = jnp.where(wraps, self.period, 1)[None] * uniform
        return jnp.where(wraps[None], uniform, normal)

    def project(self, point: Float[Array, " dim"]) -> Float[Array, " dim"]:
        return point


def pooled(
    parameters: Parameters, numbers: Float[Array, " dim"]
) -> Float[Array, " dim"]:
    r"""Return $\frac1{|G|} \sum_g g v$ over the permutations g of labels.

    Along an axis of labels it is the mean; of a matrix whose rows and columns both are
    labels, the diagonal has one mean, and the rest has another.
    """
    means = []
    parts = parameters.free(numbers).values()
    for array, axes in zip(parts, parameters.axes, strict=True):
        if len(axes) == 1:
            mean = jnp.mean(array, axis=axes[0], keepdims=True)
            array = jnp.broadcast_to(mean, array.shape)
        elif axes:
            array = _matrix_mean(array, axes)
        means.append(array.ravel())
    return jnp.concatenate(means)


def without_signs(
    parameters: Parameters, center: Float[Array, " dim"]
) -> Float[Array, " dim"]:
    """Return a pooled center, zero where labels change their signs."""
    if not parameters.signed:
        return center
    parts = zip(parameters.free(center).values(), parameters.axes, strict=True)
    return jnp.concatenate(
        [jnp.zeros(part.size) if axes else part.ravel() for part, axes in parts]
    )


def _matrix_mean(array: Array, axes: tuple[int, ...]) -> Array:
    """Return the means of the diagonal along two axes, and of the rest."""
    on = np.expand_dims(
        np.eye(array.shape[axes[0]]),
        [axis for axis in range(array.ndim) if axis not in axes],
    )
    mean = jnp.zeros_like(array)
    for mask in (on, 1 - on):
        where = jnp.asarray(mask, array.dtype)
        average = jnp.sum(array * where, axis=axes, keepdims=True) / mask.sum()
        mean = mean + average * where
    return mean
