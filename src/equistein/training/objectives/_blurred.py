"""An objective on data with noise."""

from typing import Any

import equinox as eqx
import jax
import jax.random as jr
from jaxtyping import PyTree

from equistein._gate import gate
from equistein._numbers import check_positive
from equistein._types import Key, Scalar
from equistein.training._batch import Batch
from equistein.training.objectives._base import AbstractObjective, Info


@gate
class Blurred(AbstractObjective[Any]):
    r"""Another objective on $x + \sigma \xi$, with new normal $\xi$ in each batch.

    The noise stays on the subspace of the energy's group. The energy then learns the
    data blurred by $\sigma$, which keeps it from narrowing onto single points.

    Args:
        objective: The objective.
        noise: The noise $\sigma > 0$, in the units of the points.

    Raises:
        ValueError: If the noise is not positive.

    References:
        Grathwohl et al. (2020), Your classifier is secretly an energy based model,
        appendix A.
    """

    objective: AbstractObjective
    noise: float = eqx.field(converter=float)

    def __check_init__(self):
        check_positive("Blurred", noise=self.noise)

    def init(self, key: Key, energy: Any, data: Batch) -> PyTree:
        return self.objective.init(key, energy, data)

    def loss(
        self, key: Key, energy: Any, state: PyTree, batch: Batch
    ) -> tuple[Scalar, PyTree, Info]:
        noise_key, key = jr.split(key)
        points = batch.points
        project = energy.group(points.shape[1:]).project
        noise = jr.normal(noise_key, points.shape, points.dtype)
        blurred = points + self.noise * jax.vmap(project)(noise)
        return self.objective.loss(key, energy, state, batch.moved_to(blurred))

    @property
    def uses_labels(self) -> bool:
        return self.objective.uses_labels

    @property
    def uses_rows(self) -> bool:
        return self.objective.uses_rows
