"""Settings of learned densities in the plane, and how the paper trains."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax
import optax

from equistein.models import ContrastiveSettings, LinearSettings, Model
from equistein.training import AbstractNegatives, adam
from experiments._engine import AbstractConfig


@dataclasses.dataclass(frozen=True)
class Algorithm1:
    """What the paper's Algorithm 1 has beside the library's settings.

    The data of a batch repels the particles, and its steps end with a small update.

    Attributes:
        steps: For epochs, by what the sampler's steps are multiplied from then on.
        rates: The same for the learning rate, which is else constant.
    """

    steps: Mapping[int, float]
    rates: Mapping[int, float]

    def applied(self, model: Model, learning_rate: float) -> Model:
        """Return a model that is trained so."""
        batches = model.epoch_batches
        changes: dict[str, Any] = {
            "repel": True,
            "tolerance": _TOLERANCE,
            "step_factor": optax.join_schedules(
                [optax.constant_schedule(by) for by in (1.0, *self.steps.values())],
                [epoch * batches for epoch in self.steps],
            ),
        }
        is_negatives = lambda part: isinstance(part, AbstractNegatives)
        objective = jax.tree.map(
            lambda p: dataclasses.replace(p, **changes) if is_negatives(p) else p,
            model.objective, is_leaf=is_negatives,
        )  # fmt: skip
        factors = {epoch * batches: factor for epoch, factor in self.rates.items()}
        optimizer = adam(learning_rate, model.num_epochs * batches, factors=factors)
        how = dataclasses.replace(model.optimization, optimizer=optimizer)
        return dataclasses.replace(model, objective=objective, optimization=how)


_TOLERANCE = 1e-4  # the update below which a batch's steps end
REWEIGHTED = ContrastiveSettings(
    num_epochs=60, epoch_batches=10, batch_size=128, negatives="reweighted",
    kernel="independent", num_particles=512, num_steps=5, widths=(64, 64, 64),
    langevin_step_size=0.1, reset_probability=0.05, learning_rate=4e-3,
    regularization=0.0, ema=0.98,
    sample_steps=100, sample_at_once=512,
)  # fmt: skip
"""Chains with weights, exact in known: nothing else holds the energy back."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class PlanarConfig(AbstractConfig):
    """Settings of `jem-c4` and `ebm-circles`.

    Attributes:
        num_data: Training points; each seed has its own.
        num_test: Held-out points.
        num_samples: Samples drawn of all, and of each class.
        radii: The distance from the origin of the modes of each class, or of each ring.
        monitor_every: The epochs between two looks at the held-out likelihood.
        fit: How the paper's models are trained; the model sets the kernel.
        reweighted: How models are trained whose chains carry weights.
        linear: How the linear energy is fitted.
        as_in_paper: Whether the paper's models are trained by its Algorithm 1.
    """

    num_data: int = 128
    num_test: int = 2_000
    num_samples: int = 512
    radii: tuple[float, float]
    monitor_every: int = 10
    fit: ContrastiveSettings
    reweighted: ContrastiveSettings = REWEIGHTED
    linear: LinearSettings = LinearSettings()
    as_in_paper: bool = False


def planar_presets(quick: PlanarConfig, bandwidth: float) -> dict[str, PlanarConfig]:
    """Return the presets of an experiment; the bandwidth is the paper's."""
    small: dict[str, Any] = {"num_epochs": 4, "num_steps": 4, "widths": (8, 8)}
    tiny = dataclasses.replace(quick.fit, batch_size=16, sample_steps=40, **small)
    light = dataclasses.replace(
        quick.reweighted, batch_size=32, num_particles=32, **small
    )
    theirs = ContrastiveSettings(
        num_epochs=500, batch_size=32, num_particles=32, num_steps=10_000,
        widths=(32, 64, 64, 64, 32), stein_step_size=0.9, langevin_step_size=0.0,
        reset_to_data=1.0, learning_rate=1e-3, sample_steps=10_000, sample_at_once=128,
        bandwidth=bandwidth, label_weight=quick.fit.label_weight,
    )  # fmt: skip
    return {
        "smoke": dataclasses.replace(
            quick, num_seeds=2, num_data=32, num_test=64, num_samples=16,
            monitor_every=2, fit=tiny, reweighted=light,
            linear=LinearSettings(num_waves=8, sample_steps=8),
        ),
        "quick": quick,
        "paper": dataclasses.replace(quick, fit=theirs, as_in_paper=True),
    }  # fmt: skip
