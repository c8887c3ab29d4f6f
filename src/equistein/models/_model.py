"""An energy with all that it takes to train and sample it."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np

from equistein._gate import keyed
from equistein._types import AnyKey, Key, Particles, Scalar
from equistein.energies import AbstractEnergies
from equistein.models._settings import AbstractSettings
from equistein.training import (
    AbstractGenerator,
    AbstractObjective,
    AbstractSource,
    adam,
    checked_data,
    fit,
    Fitted,
    InMemory,
    OnDisk,
    Optimization,
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Model:
    """An energy with all that it takes to train and sample it.

    Attributes:
        energy: The energy, untrained.
        objective: What is minimized.
        generator: How new points are drawn.
        optimization: How the weights are updated.
        num_epochs: The number of epochs.
        epoch_batches: The number of batches of each.
        batch_size: The number of data points of each.
        about: What is saved with the learned density, such as the atomic numbers.
    """

    energy: AbstractEnergies
    objective: AbstractObjective
    generator: AbstractGenerator
    optimization: Optimization
    num_epochs: int
    epoch_batches: int
    batch_size: int
    about: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    @keyed
    def fit(self, key: AnyKey, data: Any, labels: Any = None, **options: Any) -> Fitted:
        """Fit the energy to data, as `es.fit` does with these parts.

        The `options` are its `checkpoint`, `callbacks`, `mesh` and `progress`.
        """
        if not isinstance(data, AbstractSource):
            kind = OnDisk if isinstance(data, np.memmap) else InMemory
            data = kind(data, labels, self.epoch_batches)
        fitted = fit(
            key, self.energy, data, self.objective, num_epochs=self.num_epochs,
            batch_size=self.batch_size, optimizer=self.optimization,
            generator=self.generator, **options,
        )  # fmt: skip
        return dataclasses.replace(fitted, about=dict(self.about))

    @keyed
    def check(self, key: Key, data: Particles, labels: Any = None) -> None:
        """Raise what `fit` would raise before its first epoch, and train nothing.

        Raises:
            ValueError: If the data or the labels do not fit.
        """
        everything = checked_data(
            self.energy, data, self.objective, labels, self.batch_size
        )
        self.objective.init(key, self.energy, everything)


def model_of(
    settings: AbstractSettings,
    energy: AbstractEnergies,
    objective: AbstractObjective,
    generator: AbstractGenerator,
    *,
    num_epochs: int,
    epoch_batches: int,
) -> Model:
    """Return a model to be trained as settings say, by default for `num_epochs`."""
    num_epochs = settings.num_epochs or num_epochs
    optimizer = adam(
        settings.learning_rate, num_epochs * epoch_batches,
        warm_up=settings.warm_up, gradient_clip=settings.gradient_clip,
    )  # fmt: skip
    names = ("ema", "precision", "max_rollbacks", "energy_limit")
    options = {name: getattr(settings, name) for name in names}
    return Model(
        energy=energy, objective=objective, generator=generator,
        optimization=Optimization(optimizer, **options), num_epochs=num_epochs,
        epoch_batches=epoch_batches, batch_size=settings.batch_size,
    )  # fmt: skip


def setting_or(value: float | None, otherwise: Scalar) -> Scalar:
    """Return a setting as an array, or another value where it is None."""
    return otherwise if value is None else jnp.asarray(value, otherwise.dtype)
