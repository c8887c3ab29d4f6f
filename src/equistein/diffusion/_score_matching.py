"""Losses of the score: from data, from blurred data, and at all noise levels."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, PyTree

from equistein._check_arguments import check_arguments
from equistein._numbers import check_positive
from equistein._types import Key, Particles, Scalar
from equistein.diffusion._noise_energy import AbstractNoiseEnergy
from equistein.energies import AbstractEnergy
from equistein.training import AbstractObjective, Batch, Loss


@check_arguments
class ScoreMatching(AbstractObjective[AbstractEnergy]):
    r"""The mean of $\tfrac12 |s(x)|^2 + \mathrm{div}\, s(x)$ per coordinate.

    With $s = -\nabla E$ it is least where s is the score of the data. The divergence is
    taken along one random direction per point, $\xi^T \nabla s\, \xi$ with normal $\xi$
    on the subspace of the energy's group. Use it for smooth energies in few dimensions,
    or after training with noise: where data is scarce the energy narrows onto points.

    References:
        Hyvärinen (2005), Estimation of non-normalized statistical models by score
        matching; Song et al. (2019), Sliced score matching, equation 8.
    """

    def init(self, key: Key, energy: AbstractEnergy, data: Batch) -> Any:
        return None

    def loss(self, key: Key, energy: AbstractEnergy, state: Any, batch: Batch) -> Loss:
        points, project = batch.points, energy.group(batch.points.shape[1:]).project
        directions = jax.vmap(project)(jr.normal(key, points.shape, points.dtype))

        def value(point, xi):
            score, change = jax.jvp(jax.grad(energy.log_density), (point,), (xi,))
            return jnp.mean(score**2 / 2 + xi * change)

        loss = jnp.mean(jax.vmap(value)(points, directions))
        return loss, state, {"score_matching_loss": loss}


@check_arguments
class DenoisingScoreMatching(AbstractObjective[AbstractEnergy]):
    r"""The mean of $|\sigma_0^2 s(x + \sigma \xi) / \sigma + \xi|^2$ per coordinate.

    With $s = -\nabla E$, normal $\xi$ and $\sigma = \sigma_0$ alone it is least where s
    is the score of the data blurred by $\sigma_0$. No negatives are needed; the weights
    of modes much further apart than $\sigma_0$ remain undetermined.

    With `sigma_max` the levels $\sigma$ of a batch are spread evenly over the logarithm
    of the range from $\sigma_0$ to it, and one energy, which is not given $\sigma$, has
    to fit all. The loss of a level is multiplied by $(r^2 + \sigma^2) / (r^2 +
    \sigma_0^2)$, with r the root mean square coordinate of the data. For an energy of
    each level see `es.diffusion.NoiseConditionalScoreMatching`.

    Args:
        sigma_min: The noise $\sigma_0 > 0$, in the units of the points.
        sigma_max: The largest noise; None is `sigma_min`.

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
        largest = self.sigma_min if self.sigma_max is None else self.sigma_max
        owner, least = "DenoisingScoreMatching", self.sigma_min
        check_positive(owner, sigma_min=least, sigma_max=largest)
        if largest < self.sigma_min:
            raise ValueError(
                "DenoisingScoreMatching needs `sigma_min` <= `sigma_max`, but got "
                f"{self.sigma_min!r} and {largest!r}."
            )

    def init(self, key: Key, energy: AbstractEnergy, data: Batch) -> Scalar | None:
        return None if self.sigma_max is None else jnp.mean(data.points**2)

    def loss(self, key: Key, energy: AbstractEnergy, state: Any, batch: Batch) -> Loss:
        points, project = batch.points, energy.group(batch.points.shape[1:]).project
        ratios = self._ratios(key, len(points), points.dtype)
        directions = jax.vmap(project)(jr.normal(key, points.shape, points.dtype))

        def squares(point, xi, ratio):
            score = jax.grad(energy.log_density)(point + self.sigma_min * ratio * xi)
            return jnp.mean((self.sigma_min / ratio * score + xi) ** 2)

        losses = jax.vmap(squares)(points, directions, ratios)
        if self.sigma_max is not None:
            size, least = jax.lax.stop_gradient(state), self.sigma_min**2
            losses *= (size + least * ratios**2) / (size + least)
        loss = jnp.mean(losses)
        return loss, state, {"denoising_loss": loss}

    def _ratios(self, key: Key, num: int, dtype) -> Float[Array, " point"]:
        r"""Return $\sigma / \sigma_0$, one in each of `num` log parts."""
        if self.sigma_max is None:
            return jnp.ones(num, dtype)
        offsets = jr.uniform(jr.fold_in(key, 1), (num,), dtype)
        fractions = (jnp.arange(num, dtype=dtype) + offsets) / num
        return (self.sigma_max / self.sigma_min) ** fractions


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

    def loss(
        self, key: Key, energy: AbstractNoiseEnergy, state: PyTree, batch: Batch
    ) -> tuple[Scalar, PyTree, dict[str, Scalar]]:
        level_key, key = jr.split(key)
        noise = energy.random_levels(level_key, len(batch.points))
        loss = denoising_loss(key, energy, batch.points, noise)
        return loss, state, {"denoising_loss": loss}


@check_arguments
@eqx.filter_jit
def denoising_loss(
    key: Key,
    energy: AbstractNoiseEnergy,
    points: Float[Array, "point *shape"],
    noise: Float[Array, " point"],
) -> Scalar:
    r"""Return the mean of $|\sigma s_\sigma(x + \sigma \xi) + \xi|^2$ a coordinate.

    Each point has its level of noise, $\sigma$.
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
