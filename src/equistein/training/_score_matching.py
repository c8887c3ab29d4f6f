"""Losses of the score: from data, from blurred data, along paths, of known forces."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
from jaxtyping import Array, Float

from equistein._gate import gate
from equistein._numbers import check_positive
from equistein._products import matmul
from equistein._types import Key, Particles, Scalar
from equistein.energies import AbstractEnergy, check_one_density
from equistein.groups import AbstractGroup
from equistein.training._batch import Batch
from equistein.training._objectives import AbstractObjective, Loss

_LAST = 1e-3  # of the way to the data, where paths end


@gate
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
        check_one_density("ScoreMatching", energy)
        return None

    def loss(self, key: Key, energy: AbstractEnergy, state: Any, batch: Batch) -> Loss:
        points, project = batch.points, energy.group(batch.points.shape[1:]).project
        directions = jax.vmap(project)(jr.normal(key, points.shape, points.dtype))

        def value(point, xi):
            score, change = jax.jvp(jax.grad(energy.log_density), (point,), (xi,))
            return jnp.mean(score**2 / 2 + xi * change)

        loss = jnp.mean(jax.vmap(value)(points, directions))
        return loss, state, {"score_matching_loss": loss}


@gate
class DenoisingScoreMatching(AbstractObjective[AbstractEnergy]):
    r"""The mean of $|\sigma_0^2 s(x + \sigma \xi) / \sigma + \xi|^2$ per coordinate.

    With $s = -\nabla E$, normal $\xi$ and $\sigma = \sigma_0$ alone it is least where s
    is the score of the data blurred by $\sigma_0$. No negatives are needed; the weights
    of modes much further apart than $\sigma_0$ remain undetermined.

    With `sigma_max` the levels $\sigma$ of a batch are spread evenly over the logarithm
    of the range from $\sigma_0$ to it, and one energy learns to point to the data from
    all of them: far away it is the squared distance to the data over $2 \sigma_0^2$. A
    level then weighs $s^2 + \sigma^2$ over $s^2 + \sigma_0^2$, with s the root mean
    square coordinate of the data. For an energy of its own for each level see
    `es.diffusion.NoiseConditionalScoreMatching`.

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
        largest = self.sigma_min if self.sigma_max is None else self.sigma_max
        owner, least = "DenoisingScoreMatching", self.sigma_min
        check_positive(owner, sigma_min=least, sigma_max=largest)
        if largest < self.sigma_min:
            raise ValueError(
                "DenoisingScoreMatching needs `sigma_min` <= `sigma_max`, but got "
                f"{self.sigma_min!r} and {largest!r}."
            )

    def init(self, key: Key, energy: AbstractEnergy, data: Batch) -> Scalar | None:
        check_one_density("DenoisingScoreMatching", energy)
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
        """Return levels over the least, one in each of `num` parts of the range."""
        if self.sigma_max is None:
            return jnp.ones(num, dtype)
        offsets = jr.uniform(jr.fold_in(key, 1), (num,), dtype)
        fractions = (jnp.arange(num, dtype=dtype) + offsets) / num
        return (self.sigma_max / self.sigma_min) ** fractions


@gate
class ForceMatching(AbstractObjective[AbstractEnergy]):
    r"""The mean of $|\nabla \log p(x) - F(x) / k_B T|^2$ a coordinate.

    Over the points of a batch whose forces are known. Forces tell an energy wherever
    there are points, but not its constant, nor how two regions weigh that no points
    connect: add another objective, or `SquaredError` to energies in units of $k_B T$.
    On `Blurred` points of the density itself it is target score matching.

    Args:
        scores: The forces $F / k_B T$, one row a data point in the order of the data,
            with NaN in rows that are unknown.

    Raises:
        ValueError: If they are no rows of numbers, none is known, or one is infinite.

    References:
        Ercolessi and Adams (1994), Interatomic potentials from first-principles
        calculations: the force-matching method; De Bortoli et al. (2024), Target score
        matching, equation 8, for blurred points.
    """

    scores: Float[Array, "datum *shape"]

    def __init__(self, scores: Float[Array, "datum *shape"] | np.ndarray):
        values = np.asarray(scores, float)
        if values.ndim < 2 or np.isinf(values).any() or not _known(values).any():
            raise ValueError(
                "ForceMatching needs `scores`, a row of finite forces / kT for each "
                "data point, with NaN in rows that are unknown but not in all, but got "
                f"shape {values.shape}, {np.isnan(values).sum()} numbers NaN and "
                f"{np.isinf(values).sum()} infinite."
            )
        self.scores = jnp.asarray(values, float)

    def init(self, key: Key, energy: AbstractEnergy, data: Batch) -> Any:
        check_one_density("ForceMatching", energy)
        if data.points.shape != self.scores.shape:
            raise ValueError(
                "ForceMatching needs `scores` of the shape of the data, "
                f"{data.points.shape}, but they have shape {self.scores.shape}."
            )

    def loss(self, key: Key, energy: AbstractEnergy, state: Any, batch: Batch) -> Loss:
        wanted = self.scores[batch.rows].astype(batch.points.dtype)
        known = _known(wanted)
        found = jax.vmap(jax.grad(energy.log_density))(batch.points)
        gaps = jnp.where(known, found - jnp.where(known, wanted, 0), 0)
        num = jnp.sum(known.astype(gaps.dtype))
        loss = jnp.sum(gaps**2) / (jnp.maximum(num, 1) * wanted[0].size)
        value = jnp.where(num > 0, loss, jnp.nan)
        return loss, state, {"force_matching_loss": value, "num_forces": num}

    @property
    def uses_rows(self) -> bool:
        return True


def _known(scores: Any) -> Any:
    """Return which rows have no NaN, with one axis for each axis of the scores."""
    return ~jnp.isnan(scores).any(axis=tuple(range(1, scores.ndim)), keepdims=True)


@gate
class EnergyMatching(AbstractObjective[AbstractEnergy]):
    r"""The mean of $|{-T} \nabla E(x_t) - (x_1 - x_0)|^2 / s^2$ a coordinate.

    Along straight paths $x_t = (1 - t) x_0 + t x_1$ from noise $x_0 \sim N(0, s^2)$ to
    data $x_1$, with t uniform and s the root mean square coordinate of the data. The
    gradient of the one energy moves noise to data in unit time. Near data it says where
    data is, not how likely: a phase of `ContrastiveDivergence` added to it makes
    $e^{-E}$ the density there.

    Each batch pairs its noise with its data by the least sum of squared distances. With
    `align` noise is then moved by the group onto its copy nearest to its datum, where
    `AbstractGroup.nearest` knows it. Noise moved so is still noise.

    Args:
        temperature: The temperature $T > 0$, in squared units of the points: about the
            squared width of the data's finest detail.
        align: Whether noise is moved by the group.

    Raises:
        ValueError: If the temperature is not positive.

    References:
        Balcerak et al. (2025), Energy matching: unifying flow matching and energy-based
        models for generative modeling; Klein, Krämer and Noé (2023), Equivariant flow
        matching, for the alignment.
    """

    temperature: float = eqx.field(converter=float)
    align: bool = True

    def __check_init__(self):
        check_positive("EnergyMatching", temperature=self.temperature)

    def init(self, key: Key, energy: AbstractEnergy, data: Batch) -> Scalar:
        check_one_density("EnergyMatching", energy)
        points = data.points
        group = energy.group(points.shape[1:])
        if self.align:
            jax.eval_shape(group.nearest, points[0], points[0])
        return jnp.sqrt(jnp.mean(points**2))

    def loss(self, key: Key, energy: AbstractEnergy, state: Any, batch: Batch) -> Loss:
        points, scale = batch.points, jax.lax.stop_gradient(state)
        group = energy.group(points.shape[1:])
        noise_key, time_key = jr.split(key)
        noise = scale * jr.normal(noise_key, points.shape, points.dtype)
        noise = jax.vmap(group.project)(noise)
        noise = paired(noise, points, group if self.align else None)
        offsets = jr.uniform(time_key, (len(points),), points.dtype)
        times = (jnp.arange(len(points), dtype=points.dtype) + offsets) / len(points)
        times = (1 - _LAST) * jr.permutation(time_key, times)

        def squares(start, end, time):
            slope = jax.grad(energy.log_density)(start + time * (end - start))
            return (self.temperature * slope - (end - start)) ** 2

        loss = jnp.mean(jax.vmap(squares)(noise, points, times)) / scale**2
        return loss, state, {"matching_loss": loss}


def paired(
    noise: Particles, data: Particles, group: AbstractGroup | None = None
) -> Particles:
    """Return noise in the order that brings it nearest to data, row by row.

    Args:
        noise: As many points as data.
        data: The data, stacked on axis 0.
        group: What moves noise near its datum, after the order is found; None leaves
            it as it is.
    """
    num = len(data)
    costs = matmul(-data.reshape(num, -1), noise.reshape(num, -1).T)
    rows, columns = optax.assignment.hungarian_algorithm(costs)
    noise = noise.at[rows].set(noise[columns])
    return noise if group is None else jax.vmap(group.nearest)(noise, data)
