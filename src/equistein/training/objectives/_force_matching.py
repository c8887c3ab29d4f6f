"""Force matching: the score at each data point is known."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from equistein._gate import gate
from equistein._types import Key, Scalar
from equistein.energies import AbstractEnergy, check_one_density
from equistein.training._batch import Batch
from equistein.training.objectives._base import AbstractObjective, Info


@gate
class ForceMatching(AbstractObjective[AbstractEnergy]):
    r"""The mean of $|\nabla \log p(x) - F(x) / k_B T|^2$ a coordinate.

    Over the points of a batch whose forces are known. Forces tell an energy wherever
    there are points, likely or not, but not its constant, nor how two regions weigh
    that no points connect: add another objective, or `SquaredError` to energies in
    units of $k_B T$. On `Blurred` points of the density itself it is target score
    matching: the score of the blurred density is the mean of the forces.

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

    def init(self, key: Key, energy: AbstractEnergy, data: Batch) -> PyTree:
        """Check that there is one density, and a row of scores for each point.

        Raises:
            ValueError: If there is not.
        """
        check_one_density("ForceMatching", energy)
        if data.points.shape != self.scores.shape:
            raise ValueError(
                "ForceMatching needs `scores` of the shape of the data, "
                f"{data.points.shape}, but they have shape {self.scores.shape}."
            )

    def loss(
        self, key: Key, energy: AbstractEnergy, state: PyTree, batch: Batch
    ) -> tuple[Scalar, PyTree, Info]:
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
