"""Denoising score matching at all noise levels."""

import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, PyTree

from equistein._check_arguments import check_arguments
from equistein._types import Key, Particles, Scalar
from equistein.diffusion._noise_energy import AbstractNoiseEnergy
from equistein.training import AbstractObjective, Batch


@check_arguments
class NoiseConditionalScoreMatching(AbstractObjective[AbstractNoiseEnergy]):
    r"""The mean of $|\sigma s_\sigma(x + \sigma \xi) + \xi|^2$ over noise levels.

    With $s_\sigma = -\nabla E_\sigma$ and normal $\xi$ it is least where $s_\sigma$ is
    the score of the data blurred by $\sigma$. The levels of a batch are spread evenly
    over the logarithm of their range.

    References:
        Song and Ermon (2019), Generative modeling by estimating gradients of the data
        distribution, equation 5.
    """

    def init(self, key: Key, energy: AbstractNoiseEnergy, data: Batch) -> PyTree:
        if not isinstance(energy, AbstractNoiseEnergy):
            raise ValueError(
                "NoiseConditionalScoreMatching needs a NoiseEnergy, but got "
                f"{type(energy).__name__}: take `DenoisingScoreMatching`."
            )
        point = jax.ShapeDtypeStruct(data.points.shape[1:], data.points.dtype)
        jax.eval_shape(energy.project, point)  # or `ValueError`

    def loss(
        self, key: Key, energy: AbstractNoiseEnergy, state: PyTree, batch: Batch
    ) -> tuple[Scalar, PyTree, dict[str, Scalar]]:
        level_key, key = jr.split(key)
        noise = energy.random_levels(level_key, len(batch.points))
        loss = denoising_loss(key, energy, batch.points, noise)
        return loss, state, {"denoising_loss": loss}


@check_arguments
def denoising_loss(
    key: Key,
    energy: AbstractNoiseEnergy,
    points: Float[Array, "point *shape"],
    noise: Float[Array, " point"],
) -> Scalar:
    r"""Return the mean of $|\sigma s_\sigma(x + \sigma \xi) + \xi|^2$ a coordinate.

    Args:
        key: The source of $\xi$.
        energy: The energies of all levels.
        points: The data.
        noise: The level $\sigma$ of each point.
    """
    drawn = jr.normal(key, points.shape, points.dtype)

    def squares(point, noise, xi):
        model = energy.at(noise)
        point, xi = energy.project(point), energy.project(xi)
        score = jax.grad(model.log_density)(point + noise * xi)
        return jnp.mean((noise * score + xi) ** 2)

    return jnp.mean(jax.vmap(squares)(points, noise, drawn))


@check_arguments
def repeated_denoising_loss(
    key: Key, energy: AbstractNoiseEnergy, points: Particles, num: int = 512
) -> Scalar:
    """Return the denoising loss of `num` points at random noise, repeated if few."""
    repeats = -(-num // len(points))
    some = jnp.concatenate([jax.vmap(energy.project)(points)] * repeats)
    order_key, level_key, noise_key = jr.split(key, 3)
    some = jr.permutation(order_key, some)[:num]
    noise = energy.random_levels(level_key, len(some))
    return denoising_loss(noise_key, energy, some, noise)
