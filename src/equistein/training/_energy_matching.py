"""Energy matching: the flow from noise to data as the gradient of one energy."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import optax

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
class EnergyMatching(AbstractObjective[AbstractEnergy]):
    r"""The mean of $|{-T} \nabla E(x_t) - (x_1 - x_0)|^2 / s^2$ a coordinate.

    Along straight paths $x_t = (1 - t) x_0 + t x_1$ from noise $x_0 \sim N(0, s^2)$ to
    data $x_1$, with t uniform and s the root mean square coordinate of the data. The
    energy of all times is one: its gradient moves noise to data in unit time, so that
    far from data E falls by $|x_1 - x_0|^2 / T$ on the way. Near data it says where
    data is, not how likely: a phase of `ContrastiveDivergence` added to it makes
    $e^{-E}$ the density there.

    Each batch pairs its noise with its data by the least sum of squared distances. With
    `align` noise is first moved by the group, onto its copy nearest to its datum, and
    paths are shorter and straighter still; `AbstractGroup.nearest` says for which
    groups. Noise moved so is still noise.

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
        """Return the scale of the noise.

        Raises:
            ValueError: If noise cannot be moved by the energy's group.
        """
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
