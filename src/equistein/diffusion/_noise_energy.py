"""An energy for each noise level: the interface, and one on a network."""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float

from equistein._check_arguments import accept_integer_key, check_arguments
from equistein._types import Key, Particles, Point, Scalar
from equistein.energies import AbstractEnergy
from equistein.groups import AbstractGroup
from equistein.networks import AbstractNoiseNetwork


class AbstractNoiseEnergy(AbstractEnergy):
    r"""Energies of data blurred by normal noise, one for each level $\sigma$.

    By itself it is the energy at the least noise.

    Attributes:
        scale: The root mean square coordinate of the data.
        sigma_min: The least noise, in the units of the points.
        sigma_max: The largest noise.
    """

    scale: eqx.AbstractVar[Scalar]
    sigma_min: eqx.AbstractVar[Scalar]
    sigma_max: eqx.AbstractVar[Scalar]

    @abc.abstractmethod
    def project(self, point: Point) -> Point:
        """Return the nearest point of the subspace that points live on."""

    def at(self, noise: Scalar | float) -> "AbstractNoiseEnergy":
        """Return the energy of data with so much noise."""
        noise = jnp.asarray(noise, self.sigma_min.dtype)
        return eqx.tree_at(lambda energy: energy.sigma_min, self, noise)

    def level(self, fraction: Float[Array, "*batch"]) -> Float[Array, "*batch"]:
        r"""Return the noise at a fraction of the way from the largest to the least.

        $$\sigma = \sigma_{max}^{1 - t}\, \sigma_{min}^t$$
        """
        high, low = jax.lax.stop_gradient((self.sigma_max, self.sigma_min))
        return high * (low / high) ** fraction

    @accept_integer_key
    def random_levels(self, key: Key, num: int) -> Float[Array, " point"]:
        """Return noise levels, one in each of `num` equal parts of their range."""
        dtype = self.sigma_min.dtype
        offsets = jr.uniform(key, (num,), dtype)
        return self.level((jnp.arange(num, dtype=dtype) + offsets) / num)

    @accept_integer_key
    def start(self, key: Key, num: int, shape: tuple[int, ...]) -> Particles:
        """Draw points as wide as the data with the largest noise."""
        width = jnp.sqrt(self.sigma_max**2 + self.scale**2)
        points = width * jr.normal(key, (num, *shape), width.dtype)
        return jax.vmap(self.project)(points)

    def denoise(self, point: Point) -> Point:
        r"""Return the mean of the data that noise took to a point, by Tweedie's rule.

        $$\hat x = x - \sigma^2 \nabla E_\sigma(x)$$
        """
        return point - self.sigma_min**2 * jax.grad(self)(point)


@check_arguments
class NoiseEnergy(AbstractNoiseEnergy):
    r"""The energies of data blurred by normal noise, one for each level $\sigma$.

    $$E_\sigma(x) = \frac{|x|^2}{2(\sigma^2 + s^2)}
      - \frac{s}{\sigma} f(x, \sigma / s)$$

    With s the root mean square coordinate of the data, the first term is the energy
    of a normal density as wide as the blurred data, which confines the particles. The
    force of the second is of the order that denoising asks for when the network's is
    of order one.

    Args:
        network: The network $f$.
        sigma_min: The least noise, in the units of the points.
        sigma_max: The largest noise; by default $2 s$.

    References:
        Karras et al. (2022), Elucidating the design space of diffusion-based generative
        models, section 5.
    """

    network: AbstractNoiseNetwork
    scale: Scalar
    sigma_min: Scalar
    sigma_max: Scalar

    def __init__(
        self,
        network: AbstractNoiseNetwork,
        data: Particles,
        sigma_min: float,
        sigma_max: float | None = None,
    ):
        group = network.group(data.shape[1:])
        centered = group.project_points(data)
        scale = jnp.sqrt(jnp.mean(centered**2))
        sigma_max = 2 * float(scale) if sigma_max is None else sigma_max
        if not 0 < sigma_min < sigma_max < float("inf"):
            raise ValueError(
                "NoiseEnergy needs 0 < `sigma_min` < `sigma_max`, in the units of "
                f"the points, but got {sigma_min!r} and {sigma_max!r}."
            )
        self.network = network
        self.scale = scale
        self.sigma_min = jnp.asarray(sigma_min, data.dtype)
        self.sigma_max = jnp.asarray(sigma_max, data.dtype)

    def __call__(self, point: Point) -> Scalar:
        constants = jax.lax.stop_gradient((self.scale, self.sigma_min))
        scale, noise = (number.astype(point.dtype) for number in constants)
        centered = self.network.project(point)
        confining = jnp.sum(centered**2) / (2 * (noise**2 + scale**2))
        return confining - scale / noise * self.network(point, noise / scale)

    def project(self, point: Point) -> Point:
        return self.network.project(point)

    def group(self, shape: tuple[int, ...]) -> AbstractGroup:
        return self.network.group(shape)
