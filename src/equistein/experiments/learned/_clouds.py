"""Learn a particle system from clouds: what `dw4` and `lj13` share."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax.random as jr
import numpy as np

from equistein._types import Key, Particles
from equistein.experiments.engine._checks import AbstractConfig
from equistein.experiments.engine._experiment import Entry, Trial
from equistein.experiments.engine._figures import Curves
from equistein.groups import AbstractGroup, Trivial
from equistein.models import ContrastiveSettings, for_data
from equistein.runs import Outcome
from equistein.training import Fitted


@dataclasses.dataclass(frozen=True, kw_only=True)
class CloudConfig(AbstractConfig):
    """Settings of learning a particle system.

    Attributes:
        num_samples: Samples drawn from each model, from fresh starts.
        num_epochs: Passes over the data.
        num_steps: Sampler steps a batch.
        num_particles: Persistent particles.
        width: The number of units of a hidden layer.
        depth: The number of hidden layers.
        sample_steps: Steps to draw a sample.
    """

    num_seeds: int = 1
    num_samples: int = 1_000
    num_epochs: int = 60
    num_steps: int = 60
    num_particles: int = 256
    width: int = 128
    depth: int = 3
    sample_steps: int = 1_500


TINY: dict[str, Any] = {
    "num_epochs": 2, "num_steps": 4, "num_particles": 16, "width": 16,
    "sample_steps": 40,
}  # fmt: skip
"""The settings of a run that is only tried out."""


def learn_clouds(
    config: CloudConfig,
    trial: Trial,
    group: AbstractGroup,
    data: Particles,
    **more: Any,
) -> tuple[Fitted, Key]:
    """Fit an energy with a symmetry to clouds; return the key of its samples too."""
    energy_key, fit_key, sample_key = jr.split(trial.key(0), 3)
    settings = ContrastiveSettings(
        num_epochs=config.num_epochs, batch_size=min(128, len(data)),
        num_steps=config.num_steps, num_particles=config.num_particles,
        widths=(config.width,) * config.depth, sample_steps=config.sample_steps, **more,
    )  # fmt: skip
    model = for_data(energy_key, group, data, settings=settings)
    fitted = model.fit(fit_key, data, checkpoint=trial.checkpoint(), progress=True)
    return fitted, sample_key


def cloud_models(
    config: CloudConfig,
    group: AbstractGroup,
    data: Callable[[], Particles],
    describe: Callable[..., Outcome],
    notes: tuple[str, str],
) -> list[Entry]:
    """Return the model that sees coordinates, and the one that knows the symmetry."""

    def stage(group: AbstractGroup, trial: Trial) -> Outcome:
        fitted, key = learn_clouds(config, trial, group, data())
        samples = fitted.sample(key, config.num_samples)
        return describe(samples, history=fitted.history, events=fitted.events)

    models = (
        ("plain", "plain EBM, SVGD", Trivial()),
        ("equivariant", "equivariant EBM, E-SVGD", group),
    )
    return [
        Entry(name, functools.partial(stage, group), note, label=label, trains=True)
        for (name, label, group), note in zip(models, notes, strict=True)
    ]


def _gap(outcome: Outcome) -> np.ndarray | None:
    history = outcome.history
    if "positive_energy" not in history:
        return None
    return history["positive_energy"] - history["negative_energy"]


GAP = Curves(
    "training",
    _gap,
    "energy of data minus energy of particles",
    x_label="epoch",
    level=0.0,
    level_label="no difference",
    caption="The gap that contrastive divergence closes: mean and range over seeds.",
)
