"""The training of the paper's toys, where it differs from the library's."""

import dataclasses

import jax
import optax

from equistein.models import Model
from equistein.training import AbstractNegatives, adam


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

    def applied(self, model: Model, learning_rate: float) -> Model:
        """Return a model that is trained so."""
        if self == Algorithm1():
            return model
        batches = model.epoch_batches
        step_factor = optax.join_schedules(
            [optax.constant_schedule(factor) for factor in (1.0, *self.step_factors)],
            [epoch * batches for epoch in self.step_epochs],
        )

        def changed(part):
            if not isinstance(part, AbstractNegatives):
                return part
            return dataclasses.replace(
                part, repel=self.repel, tolerance=self.tolerance,
                step_factor=step_factor,
            )  # type: ignore[call-arg]  # fmt: skip

        objective = jax.tree.map(
            changed, model.objective,
            is_leaf=lambda part: isinstance(part, AbstractNegatives),
        )  # fmt: skip
        rates = zip(self.learning_rate_epochs, self.learning_rate_factors, strict=True)
        factors = {epoch * batches: factor for epoch, factor in rates}
        optimizer = adam(
            learning_rate, model.num_epochs * batches, factors=factors or None
        )
        return dataclasses.replace(model, objective=objective, optimizer=optimizer)
