"""The density that tempering of a posterior begins at."""

import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float

from equistein._gate import gate, keyed
from equistein._types import Key, Scalar
from equistein.samplers import AbstractReference


@gate
class WideReference(AbstractReference):
    r"""Normal coordinates, but uniform ones where they come again.

    $$\log b(z) = \sum_{i \in N} \log \mathcal N(z_i; 0, \sigma_i^2)
      - \sum_{i \notin N} \log P_i$$

    Normalized on the torus where some are periodic: samplers walk on its cover, and all
    densities there have the periods.

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
