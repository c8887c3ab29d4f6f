"""An energy for each noise level: on a network, or one that corrects normal ones."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float

from equistein._check_arguments import accept_integer_key, check_arguments
from equistein._numbers import check_integers
from equistein._types import Key, Particles, Point, Scalar
from equistein.diffusion._blurred_normals import BlurredNormals
from equistein.energies import (
    AbstractEnergy,
    check_class,
    Evaluation,
    freeze,
    values_at,
)
from equistein.groups import AbstractGroup
from equistein.metrics import annealed_importance_sampling, bits_per_dimension
from equistein.networks import AbstractNoiseNetwork, SteerableUNet

_NUM_CHAINS = 16
_MOST_JUDGED = 256  # images


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

    def project(self, point: Point) -> Point:
        """Return the nearest point of the subspace that points live on."""
        return self.group(point.shape).project(point)

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
        centered = self.project(point)
        confining = jnp.sum(centered**2) / (2 * (noise**2 + scale**2))
        return confining - scale / noise * self.network(point, noise / scale)

    def group(self, shape: tuple[int, ...]) -> AbstractGroup:
        return self.network.group(shape)


@check_arguments
class MixtureNoiseEnergy(AbstractNoiseEnergy):
    r"""What is known of blurred images, corrected by a network.

    $$E_\sigma(x) = -\log p^{\mathcal N}_\sigma(x) - \frac{s}{\sigma} f(x, \sigma / s)$$

    The first term is the exact energy of normal distributions like the data of each
    class, with noise; what the data is beyond that, f learns. Far from all data the
    first term rules, and nothing there is likely.

    With classes, $E(x, y) = E(x) - \log p(y | x)$ with a softmax of the network's. The
    energies of one class, from which its images are drawn, leave out the normal
    distributions of the others: $p_\sigma(x | y) \propto p_\sigma(x)\, p^{\mathcal
    N}_\sigma(y | x)$. Network and normal distributions have as many classes, and the
    noise is from `sigma_min` to `sigma_max`, in the units of the points.

    References:
        Karras et al. (2022), Elucidating the design space of diffusion-based generative
        models, section 5, for the factor of f; Grathwohl et al. (2020) for the classes.
    """

    network: SteerableUNet
    normals: BlurredNormals
    scale: Scalar
    sigma_min: Scalar
    sigma_max: Scalar
    has_classes: bool = eqx.field(static=True)

    def __init__(
        self,
        network: SteerableUNet,
        normals: BlurredNormals,
        sigma_min: float,
        sigma_max: float,
    ):
        if not 0 < sigma_min < sigma_max < float("inf"):
            raise ValueError(
                "MixtureNoiseEnergy needs 0 < `sigma_min` < `sigma_max`, in the units "
                f"of the points, but got {sigma_min!r} and {sigma_max!r}."
            )
        self.network, self.normals = network, normals
        self.has_classes = network.head is not None
        dtype = normals.means.dtype
        self.scale, self.sigma_min, self.sigma_max = (
            jnp.asarray(number, dtype)
            for number in (network.scale, sigma_min, sigma_max)
        )

    def __call__(self, point: Point) -> Scalar:
        normals, scale, noise = freeze((self.normals, self.scale, self.sigma_min))
        learned = self.network(point, noise / scale)
        return -normals.log_density(point, noise) - scale / noise * learned

    def evaluate(self, point: Point) -> Evaluation:
        energy = self(point)
        if not self.has_classes:
            return Evaluation(energy)
        scale, noise = freeze((self.scale, self.sigma_min))
        # Without the energy, which cancels in p(y | x) and would cost a cross-entropy
        # as much as the rest.
        return Evaluation(energy, self.network.classes(point, noise / scale))

    def condition(self, label: int | np.integer) -> "MixtureNoiseEnergy":
        """Return the energies of one class."""
        if not self.has_classes:
            return super().condition(label)  # type: ignore[return-value]
        check_class(label, len(self.normals.log_shares))
        network = eqx.tree_at(lambda f: f.head, self.network, None)
        normals = self.normals.of_class(int(label))
        noises = float(self.sigma_min), float(self.sigma_max)
        return MixtureNoiseEnergy(network, normals, *noises)

    def num_classes(self, shape: tuple[int, ...]) -> int | None:
        return len(self.normals.log_shares) if self.has_classes else None

    @accept_integer_key
    def start(self, key: Key, num: int, shape: tuple[int, ...]) -> Particles:
        """Draw points of the normal distributions with the largest noise."""
        return self.normals.at(self.sigma_max).sample(key, num)

    def group(self, shape: tuple[int, ...]) -> AbstractGroup:
        return self.network.group(shape)


@check_arguments
def image_bits(
    key: Key, energy: MixtureNoiseEnergy, images: Particles, *, num_steps: int = 100
) -> dict[str, Scalar]:
    r"""Return the bits a pixel of images with the least noise $\sigma$.

    $$b = \log_2 256 + \frac{\hat E\,[E_\sigma(x + \sigma \xi)] + \log Z}{d \log 2}$$

    for pixels from 0 to 1. $\log Z$ is found by annealing from the normal distributions
    of the energy, where it is 0, and back from the images: the mean of both ways, with
    `num_steps` temperatures each. At least two held-out images are judged, the first
    256.

    Returns:
        `bits_per_dimension`; `bits_per_dimension_gap`, half of what is between the two
        ways, which vanishes as the annealing slows down; and
        `bits_per_dimension_of_normals`, those of the normal distributions alone.

    References:
        Grosse, Ancha and Roy (2016), Measuring the reliability of MCMC inference;
        Theis, van den Oord and Bethge (2016), A note on the evaluation of generative
        models, section 3.1.
    """
    check_integers("`image_bits`", num_steps=num_steps)
    noise_key, anneal_key = jr.split(key)
    points = jnp.asarray(images)[:_MOST_JUDGED]
    noise = jr.normal(noise_key, points.shape, points.dtype)
    points = points + energy.sigma_min * noise
    normals, shape = energy.normals.at(energy.sigma_min), points.shape[1:]
    found = annealed_importance_sampling(
        anneal_key, energy.log_density, normals, samples=points,
        num_particles=_NUM_CHAINS, num_steps=num_steps,
    )  # fmt: skip

    def bits(density: Any, log_normalizer: Any) -> Scalar:
        mean = jnp.mean(values_at(density, points))
        return bits_per_dimension(mean - log_normalizer, shape)

    between = jnp.abs(found.upper - found.lower) / 2
    return {
        "bits_per_dimension": bits(energy.log_density, found.value),
        "bits_per_dimension_gap": between / (points[0].size * np.log(2)),
        "bits_per_dimension_of_normals": bits(normals.log_density, 0.0),
    }
