"""The training of the paper's toys, where it differs from the library's."""

import dataclasses
from typing import Any

import optax

from equistein._types import Particles
from equistein.energies import AbstractEnergy
from equistein.models import (
    contrastive_model,
    ContrastiveSettings,
    Model,
    objective_for,
)
from equistein.training import adam, ContrastiveDivergence


@dataclasses.dataclass(frozen=True, kw_only=True)
class Algorithm1:
    """What the paper's Algorithm 1 has beside the library's settings.

    Attributes:
        repel: Whether the data of a batch repels the particles.
        tolerance: The update below which a batch's steps end; None takes all.
        step_epochs: The epochs from which on the sampler's steps are multiplied.
        step_factors: By what, compared with the start.
        learning_rate_epochs: The same for the learning rate; none is a cosine.
        learning_rate_factors: By what, compared with the start.
    """

    repel: bool = False
    tolerance: float | None = None
    step_epochs: tuple[int, ...] = ()
    step_factors: tuple[float, ...] = ()
    learning_rate_epochs: tuple[int, ...] = ()
    learning_rate_factors: tuple[float, ...] = ()

    def __post_init__(self):
        """Raise `ValueError` for epochs and factors that do not match."""
        for name in ("step", "learning_rate"):
            epochs, factors = (
                getattr(self, f"{name}_{part}") for part in ("epochs", "factors")
            )
            if len(epochs) != len(factors) or list(epochs) != sorted(set(epochs)):
                raise ValueError(
                    f"`{name}_epochs` must rise, with as many `{name}_factors`, but "
                    f"got {epochs!r} and {factors!r}."
                )

    def applied(
        self, model: Model, settings: ContrastiveSettings, data: Particles, labels: Any
    ) -> Model:
        """Return a model that is trained so."""
        if self == Algorithm1():
            return model
        bare = dataclasses.replace(settings, label_weight=0.0, data_noise=0.0)
        energy = model.energy
        assert isinstance(energy, AbstractEnergy)
        divergence = contrastive_model(energy, data, None, bare).objective
        assert isinstance(divergence, ContrastiveDivergence)
        negatives: Any = divergence.negatives
        batches = model.epoch_batches
        steps = optax.piecewise_constant_schedule(1.0, self._step_ratios(batches))
        negatives = dataclasses.replace(
            negatives, repel=self.repel, tolerance=self.tolerance, step_factor=steps
        )
        rates = zip(self.learning_rate_epochs, self.learning_rate_factors, strict=True)
        factors = {epoch * batches: factor for epoch, factor in rates}
        optimizer = adam(
            settings.learning_rate, model.num_epochs * batches, factors=factors or None
        )
        objective = objective_for(negatives, labels, settings)
        return dataclasses.replace(model, objective=objective, optimizer=optimizer)

    def _step_ratios(self, batches: int) -> dict[int, float]:
        """Return by what steps are multiplied at each change, by number of batches."""
        before = (1.0, *self.step_factors)
        each = zip(self.step_epochs, self.step_factors, before, strict=False)
        return {epoch * batches: factor / last for epoch, factor, last in each}
