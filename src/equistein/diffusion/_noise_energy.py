"""An energy for each level of noise, on one network."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from equistein._gate import gate
from equistein._types import Particles, Point, Scalar
from equistein.diffusion._base import AbstractNoiseEnergy
from equistein.energies import AbstractEnergy
from equistein.groups import AbstractGroup
from equistein.networks import AbstractNoiseNetwork


@gate
class NoiseEnergy(AbstractEnergy, AbstractNoiseEnergy):
    r"""The energies of data blurred by normal noise, one for each level $\sigma$.

    $$E_\sigma(x) = \frac{|x|^2}{2(\sigma^2 + s^2)}
      - \frac{s}{\sigma} f(x, \sigma / s)$$

    With s the root mean square coordinate of the data, the first term is the energy
    of a normal density as wide as the blurred data, which confines the particles. The
    force of the second is of the order that denoising asks for when the network's is
    of order one. By itself it is the energy at the least noise, as any other.

    Args:
        network: The network $f$.
        data: The data, stacked on axis 0.
        sigma_min: The least noise, in the units of the points.
        sigma_max: The largest noise; by default $2 s$.

    Raises:
        ValueError: If not `0 < sigma_min < sigma_max`.

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
        centered = jax.vmap(group.project)(data)
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

    def at(
        self, noise: Scalar | float, label: Int[Array, ""] | None = None
    ) -> "NoiseEnergy":
        del label  # there is one kind of points
        noise = jnp.asarray(noise, self.sigma_min.dtype)
        return eqx.tree_at(lambda energy: energy.sigma_min, self, noise)

    def project(self, point: Point, label: Int[Array, ""] | None = None) -> Point:
        del label
        return self.network.project(point)

    def fraction_present(self, label: Int[Array, ""] | None = None) -> float:
        return 1.0

    def group(self, shape: tuple[int, ...]) -> AbstractGroup:
        return self.network.group(shape)
