"""Score matching: the density of data, without chains and without noise."""

import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import PyTree

from equistein._gate import gate
from equistein._types import Key, Scalar
from equistein.energies import AbstractEnergy, check_one_density
from equistein.training._batch import Batch
from equistein.training.objectives._base import AbstractObjective, Info


@gate
class ScoreMatching(AbstractObjective[AbstractEnergy]):
    r"""The mean of $\tfrac12 |s(x)|^2 + \mathrm{div}\, s(x)$ a coordinate.

    With $s = -\nabla E$ it is least where s is the score of the data. The divergence is
    taken along one random direction a point, $\xi^T \nabla s\, \xi$ with normal $\xi$
    on the subspace of the energy's group. No chains are needed and no noise, but a
    smooth energy of low dimension, or one that was learned with noise before: it
    narrows onto single points where data is scarce.

    References:
        Hyvärinen (2005), Estimation of non-normalized statistical models by score
        matching; Song et al. (2019), Sliced score matching, equation 8.
    """

    def init(self, key: Key, energy: AbstractEnergy, data: Batch) -> PyTree:
        check_one_density("ScoreMatching", energy)
        return None

    def loss(
        self, key: Key, energy: AbstractEnergy, state: PyTree, batch: Batch
    ) -> tuple[Scalar, PyTree, Info]:
        points, project = batch.points, energy.group(batch.points.shape[1:]).project
        drawn = jax.vmap(project)(jr.normal(key, points.shape, points.dtype))

        def value(point, xi):
            score, slope = jax.jvp(jax.grad(energy.log_density), (point,), (xi,))
            return jnp.mean(score**2 / 2 + xi * slope)

        loss = jnp.mean(jax.vmap(value)(points, drawn))
        return loss, state, {"score_matching_loss": loss}
