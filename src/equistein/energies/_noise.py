"""An energy for each level of noise."""

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float

from equistein._types import Key, Particles, Point, Scalar
from equistein.energies._base import AbstractEnergy
from equistein.features import PairHistogram
from equistein.groups import AbstractGroup
from equistein.kernels import AbstractKernel, Pullback, RBF
from equistein.networks import EGNN, NoiseMLP

_NUM_CENTERS = 12  # of the histogram that the kernel sees
_LOOKED_AT = 512  # clouds to measure distances in


class NoiseEnergy(AbstractEnergy):
    r"""The energies of data blurred by normal noise, one for each level $\sigma$.

    $$E_\sigma(x) = \frac{|x|^2}{2(\sigma^2 + s^2)}
      - \frac{s}{\sigma} f(x, \sigma / s)$$

    With s the root mean square coordinate of the data, the first term is the energy
    of a normal density as wide as the blurred data, which confines the particles. The
    force of the second is of the order that denoising asks for when the network's is
    of order one. The least noise gives the energy of the data.

    Args:
        network: The network $f$.
        data: The data, stacked on axis 0.
        noise: The least noise, in the units of the points.
        noise_max: The largest noise; by default $2 s$.

    Raises:
        ValueError: If not `0 < noise < noise_max`.

    References:
        Karras et al. (2022), Elucidating the design space of diffusion-based generative
        models, section 5.
    """

    network: EGNN | NoiseMLP
    scale: Scalar
    noise: Scalar
    noise_max: Scalar

    def __init__(
        self,
        network: EGNN | NoiseMLP,
        data: Particles,
        noise: float,
        noise_max: float | None = None,
    ):
        group = network.group(data.shape[1:])
        centered = jax.vmap(group.project)(data)
        scale = jnp.sqrt(jnp.mean(centered**2))
        noise_max = 2 * float(scale) if noise_max is None else noise_max
        if not 0 < noise < noise_max < float("inf"):
            raise ValueError(
                "NoiseEnergy needs 0 < `noise` < `noise_max`, lengths in the units of "
                f"the points, but got {noise!r} and {noise_max!r}."
            )
        self.network = network
        self.scale = scale
        self.noise = jnp.asarray(noise, data.dtype)
        self.noise_max = jnp.asarray(noise_max, data.dtype)

    def __call__(self, point: Point) -> Scalar:
        fixed = jax.lax.stop_gradient((self.scale, self.noise))
        scale, noise = (number.astype(point.dtype) for number in fixed)
        centered = self.project(point)
        confining = jnp.sum(centered**2) / (2 * (noise**2 + scale**2))
        return confining - scale / noise * self.network(point, noise / scale)

    def at(self, noise: Scalar) -> "NoiseEnergy":
        """Return the energy of data with so much noise."""
        return eqx.tree_at(lambda energy: energy.noise, self, noise)

    def level(self, share: Float[Array, "*batch"]) -> Float[Array, "*batch"]:
        r"""Return the noise at a share of the way from the largest to the least.

        $$\sigma = \sigma_{max}^{1 - t}\, \sigma_{min}^t$$
        """
        high, low = jax.lax.stop_gradient((self.noise_max, self.noise))
        return high * (low / high) ** share

    def start(self, key: Key, num: int, shape: tuple[int, ...]) -> Particles:
        """Draw points as wide as the data with the largest noise, to anneal from."""
        width = jnp.sqrt(self.noise_max**2 + self.scale**2)
        points = width * jr.normal(key, (num, *shape), width.dtype)
        return jax.vmap(self.project)(points)

    def project(self, point: Point) -> Point:
        """Return a point with its center at the origin, where there is a symmetry."""
        if isinstance(self.network, NoiseMLP):
            return point
        here = self.network.present().astype(point.dtype)[:, None]
        center = jnp.sum(here * point, axis=0) / jnp.sum(here)
        return here * (point - center[None, :])

    def denoised(self, point: Point) -> Point:
        r"""Return the mean of the data that noise took to a point, by Tweedie's rule.

        $$\hat x = x - \sigma^2 \nabla E_\sigma(x)$$
        """
        return point - self.noise**2 * jax.grad(self)(point)

    def stein_share(self) -> Scalar:
        """Return the Stein step over the Langevin step, whatever the unit of length.

        The kernel's features are numbers, so its force has other units than theirs.
        """
        if isinstance(self.network, NoiseMLP):
            return jnp.asarray(0.04, self.scale.dtype)
        return 0.04 * (self.network.reach / 8) ** 2

    def group(self, shape: tuple[int, ...]) -> AbstractGroup:
        return self.network.group(shape)

    def kernel(self, shape: tuple[int, ...], bandwidth: float | None) -> AbstractKernel:
        self.group(shape).check_shape(shape)
        if isinstance(self.network, NoiseMLP):
            return RBF(bandwidth)
        reach = float(self.network.reach)
        features = PairHistogram(
            self.network.species, reach=reach, num_centers=_NUM_CENTERS,
            epsilon=1e-3 * reach,
        )  # fmt: skip
        return Pullback(RBF(bandwidth), features)


def spans(data: Particles, sizes: Sequence[int] | None = None) -> tuple[float, float]:
    """Return the median distance to the nearest particle, and the largest distance.

    Args:
        data: Clouds of particles, stacked on axis 0.
        sizes: The number of particles of each, if not all rows count.

    Raises:
        ValueError: If particles coincide, most of them or all.
    """
    clouds = np.asarray(data, np.float64)[:_LOOKED_AT]
    nearest, farthest = [], 0.0
    for index, cloud in enumerate(clouds):
        cloud = cloud if sizes is None else cloud[: sizes[index]]
        gaps = np.linalg.norm(cloud[:, None] - cloud[None], axis=-1)
        farthest = max(farthest, float(gaps.max()))
        np.fill_diagonal(gaps, np.inf)
        nearest.append(gaps.min(axis=1))
    median = float(np.median(np.concatenate(nearest)))
    if not median > 1e-6 * farthest:
        raise ValueError(
            "Particles in `data` coincide: a graph network needs most of them apart."
        )
    return median, farthest
