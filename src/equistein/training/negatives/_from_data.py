"""Short chains from data: contrastive divergence as it was first named."""

from typing import Any

from equistein._gate import gate
from equistein._numbers import check_integers
from equistein._types import Key, Particles, Scalar
from equistein.energies import AbstractEnergy
from equistein.samplers import AbstractSampler, advance
from equistein.training._batch import Batch
from equistein.training.negatives._base import (
    AbstractNegatives,
    displacement,
    score_norm,
)


@gate
class FromData(AbstractNegatives):
    """Chains that start at the data of each batch, and take some steps.

    Where they drift to is what the energy has wrong nearby; the weights of modes that
    are far apart stay what they were. Negatives that belong to their data point each
    make differences of energies less noisy than chains of their own would.

    Args:
        sampler: Such as `MALA(step_size)`, which is exact, or `Langevin(step_size)`.
        num_steps: The steps of a batch.

    Raises:
        ValueError: If an argument is not what it should be.

    References:
        Hinton (2002), Training products of experts by minimizing contrastive
        divergence.
    """

    sampler: AbstractSampler
    num_steps: int = 20

    def __check_init__(self):
        if not isinstance(self.sampler, AbstractSampler):
            raise ValueError(
                "FromData needs `sampler`, one such as MALA(step_size), but got "
                f"{self.sampler!r}."
            )
        check_integers("FromData", num_steps=self.num_steps)

    def init(self, key: Key, energy: AbstractEnergy, data: Batch) -> Any:
        self.sampler.check_shape(data.points.shape[1:])
        return None

    def draw(
        self, key: Key, energy: AbstractEnergy, state: Any, batch: Batch
    ) -> tuple[Particles, Any, dict[str, Scalar]]:
        sampler = self.sampler.scaled(batch.step_scale)
        start = sampler.init(batch.points, energy.log_density)
        moved = advance(key, sampler, energy.log_density, start, self.num_steps)
        after = moved.particles
        info = {
            "score_norm": score_norm(energy, after),
            "displacement": displacement(batch.points, after),
        }
        return after, state, info
