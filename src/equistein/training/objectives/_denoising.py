"""Denoising score matching of one energy, at one level of noise or over several."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, PyTree

from equistein._gate import gate
from equistein._numbers import check_positive
from equistein._types import Key, Scalar
from equistein.energies import AbstractEnergy, check_one_density
from equistein.training._batch import Batch
from equistein.training.objectives._base import AbstractObjective, Info


@gate
class DenoisingScoreMatching(AbstractObjective[AbstractEnergy]):
    r"""The mean of $|\sigma_0^2 s(x + \sigma \xi) / \sigma + \xi|^2$ a coordinate.

    With $s = -\nabla E$, normal $\xi$ and $\sigma = \sigma_0$ alone it is least where s
    is the score of the data blurred by $\sigma_0$. No negatives are needed; the weights
    of modes much further apart than $\sigma_0$ remain undetermined.

    With `sigma_max` the levels $\sigma$ of a batch are spread evenly over the logarithm
    of the range from $\sigma_0$ to it, and one energy learns to point to the data from
    all of them: far away it is the squared distance to the data over $2 \sigma_0^2$, so
    that nothing far from data is likely. A level then weighs $s^2 + \sigma^2$ over
    $s^2 + \sigma_0^2$, with s the root mean square coordinate of the data: at
    large noise the loss would hardly see what the data is. For an energy of its own for
    each level see `es.diffusion.NoiseConditionalScoreMatching`.

    Args:
        sigma_min: The noise $\sigma_0 > 0$, in the units of the points.
        sigma_max: The largest noise; None is `sigma_min`.

    Raises:
        ValueError: If not `0 < sigma_min <= sigma_max`.

    References:
        Vincent (2011), A connection between score matching and denoising autoencoders;
        Li, Chen and Sommer (2019), Learning energy-based models in high-dimensional
        spaces with multi-scale denoising score matching; Karras et al. (2022),
        Elucidating the design space of diffusion-based generative models, table 1, for
        the weights.
    """

    sigma_min: float = eqx.field(converter=float)
    sigma_max: float | None = None

    def __check_init__(self):
        check_positive("DenoisingScoreMatching", sigma_min=self.sigma_min)
        if self.sigma_max is None:
            return
        check_positive("DenoisingScoreMatching", sigma_max=self.sigma_max)
        if self.sigma_max < self.sigma_min:
            raise ValueError(
                "DenoisingScoreMatching needs `sigma_min` <= `sigma_max`, but got "
                f"{self.sigma_min!r} and {self.sigma_max!r}."
            )

    def init(self, key: Key, energy: AbstractEnergy, data: Batch) -> Scalar | None:
        """Return the squared size of the data, which one level alone does not need."""
        check_one_density("DenoisingScoreMatching", energy)
        return None if self.sigma_max is None else jnp.mean(data.points**2)

    def loss(
        self, key: Key, energy: AbstractEnergy, state: PyTree, batch: Batch
    ) -> tuple[Scalar, PyTree, Info]:
        points, project = batch.points, energy.group(batch.points.shape[1:]).project
        ratios = self._ratios(key, len(points), points.dtype)
        drawn = jax.vmap(project)(jr.normal(key, points.shape, points.dtype))

        def squares(point, xi, ratio):
            score = jax.grad(energy.log_density)(point + self.sigma_min * ratio * xi)
            return jnp.mean((self.sigma_min / ratio * score + xi) ** 2)

        losses = jax.vmap(squares)(points, drawn, ratios)
        if self.sigma_max is not None:
            size, least = jax.lax.stop_gradient(state), self.sigma_min**2
            losses *= (size + least * ratios**2) / (size + least)
        loss = jnp.mean(losses)
        return loss, state, {"denoising_loss": loss}

    def _ratios(self, key: Key, num: int, dtype) -> Float[Array, " point"]:
        """Return levels over the least, one in each of `num` parts of the range."""
        if self.sigma_max is None:
            return jnp.ones(num, dtype)
        offsets = jr.uniform(jr.fold_in(key, 1), (num,), dtype)
        fractions = (jnp.arange(num, dtype=dtype) + offsets) / num
        return (self.sigma_max / self.sigma_min) ** fractions
