"""Denoising score matching at one level of noise."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import PyTree

from equistein._numbers import check_positive
from equistein._types import Key, Scalar
from equistein.energies import AbstractEnergy
from equistein.training._batch import Batch
from equistein.training.objectives._base import AbstractObjective, Info


class DenoisingScoreMatching(AbstractObjective[AbstractEnergy]):
    r"""The mean of $|\sigma s(x + \sigma \xi) + \xi|^2$ a coordinate.

    With $s = -\nabla E$ and normal $\xi$ it is least where s is the score of the data
    blurred by $\sigma$. No negatives are needed; the weights of modes much further
    apart than $\sigma$ remain undetermined. For all levels of noise at once see
    `es.diffusion.NoiseConditionalScoreMatching`.

    Args:
        noise: The noise $\sigma > 0$, in the units of the points.

    Raises:
        ValueError: If the noise is not positive.

    References:
        Vincent (2011), A connection between score matching and denoising autoencoders.
    """

    noise: float = eqx.field(converter=float)

    def __check_init__(self):
        check_positive("DenoisingScoreMatching", noise=self.noise)

    def init(self, key: Key, energy: AbstractEnergy, data: Batch) -> PyTree:
        return None

    def loss(
        self, key: Key, energy: AbstractEnergy, state: PyTree, batch: Batch
    ) -> tuple[Scalar, PyTree, Info]:
        points, project = batch.points, energy.group(batch.points.shape[1:]).project
        drawn = jax.vmap(project)(jr.normal(key, points.shape, points.dtype))

        def squares(point, xi):
            score = jax.grad(energy.log_density)(point + self.noise * xi)
            return (self.noise * score + xi) ** 2

        loss = jnp.mean(jax.vmap(squares)(points, drawn))
        return loss, state, {"denoising_loss": loss}
