"""The interface of noise-conditional energies."""

import abc
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, Int

from equistein._gate import keyed
from equistein._types import Key, Particles, Point, Scalar
from equistein.energies import AbstractEnergies, AbstractEnergy


class AbstractNoiseEnergy(AbstractEnergies):
    r"""Energies of data blurred by normal noise, one for each level $\sigma$.

    Attributes:
        scale: The root mean square coordinate of the data.
        sigma_min: The least noise, in the units of the points.
        sigma_max: The largest noise.
    """

    scale: eqx.AbstractVar[Scalar]
    sigma_min: eqx.AbstractVar[Scalar]
    sigma_max: eqx.AbstractVar[Scalar]

    @abc.abstractmethod
    def at(
        self, noise: Scalar | float, label: Int[Array, ""] | None = None
    ) -> AbstractEnergy:
        """Return the energy of data with so much noise, of the kind that a label tells.

        Labels are for energies of several kinds of points.
        """

    @abc.abstractmethod
    def project(self, point: Point, label: Int[Array, ""] | None = None) -> Point:
        """Return the nearest point of the subspace that points of a kind live on."""

    def check_labels(self, labels: Any) -> None:
        """Raise `ValueError` unless labels tell the kind of each point, if need be."""

    @abc.abstractmethod
    def fraction_present(self, label: Int[Array, ""] | None = None) -> Scalar | float:
        """Return the fraction of a point's coordinates that count for a kind."""

    def level(self, fraction: Float[Array, "*batch"]) -> Float[Array, "*batch"]:
        r"""Return the noise at a fraction of the way from the largest to the least.

        $$\sigma = \sigma_{max}^{1 - t}\, \sigma_{min}^t$$
        """
        high, low = jax.lax.stop_gradient((self.sigma_max, self.sigma_min))
        return high * (low / high) ** fraction

    @keyed
    def random_levels(self, key: Key, num: int) -> Float[Array, " point"]:
        """Return noise levels, one in each of `num` like parts of their range."""
        dtype = self.sigma_min.dtype
        offsets = jr.uniform(key, (num,), dtype)
        return self.level((jnp.arange(num, dtype=dtype) + offsets) / num)

    @keyed
    def start(self, key: Key, num: int, shape: tuple[int, ...]) -> Particles:
        """Draw points as wide as the data with the largest noise."""
        width = jnp.sqrt(self.sigma_max**2 + self.scale**2)
        points = width * jr.normal(key, (num, *shape), width.dtype)
        return jax.vmap(self.project)(points)

    def denoised(self, point: Point, label: Int[Array, ""] | None = None) -> Point:
        r"""Return the mean of the data that noise took to a point, by Tweedie's rule.

        $$\hat x = x - \sigma^2 \nabla E_\sigma(x)$$
        """
        return point - self.sigma_min**2 * jax.grad(self.at(self.sigma_min, label))(
            point
        )
