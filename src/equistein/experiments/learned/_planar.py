"""Learn a planar density, with and without its symmetry: what two experiments share."""

import abc
import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float

from equistein._types import Key, LogDensity, Particles, Scalar
from equistein.energies import AbstractEnergy
from equistein.experiments.engine._checks import AbstractConfig
from equistein.experiments.engine._experiment import Entry, Trial
from equistein.experiments.learned._algorithm_1 import Algorithm1
from equistein.experiments.learned._plane import likelihood_monitor, Plane
from equistein.groups import AbstractGroup, Trivial
from equistein.metrics import energy_distance
from equistein.models import contrastive_model, ContrastiveSettings, energy_for
from equistein.runs import FLOOR, Outcome, seed_outcome
from equistein.training import Monitor

NUM_EXACT = 4_000
REACH = 2.5  # half the side of the plane, over the largest radius
_DRAWN = 140  # points along a side of a density that is drawn


@dataclasses.dataclass(frozen=True, kw_only=True)
class PlanarConfig(AbstractConfig):
    """Settings of `jem-c4` and `ebm-circles`.

    Attributes:
        num_data: Training points; each seed has its own.
        num_test: Held-out points.
        num_samples: Samples drawn of all, and of each class.
        radii: The distance from the origin of the modes of each class, or of each ring.
        monitor_every: The epochs between two looks at the held-out likelihood.
        fit: How models are trained; the model sets the kernel.
        algorithm: What is different in the paper's own training.
    """

    num_data: int = 128
    num_test: int = 2_000
    num_samples: int = 512
    radii: tuple[float, float]
    monitor_every: int = 10
    fit: ContrastiveSettings
    algorithm: Algorithm1 = Algorithm1()

    def __post_init__(self):
        super().__post_init__()
        if self.fit.temperature != 1:
            raise ValueError(
                "The experiment measures its models at temperature 1, but got "
                f"`temperature` {self.fit.temperature!r}."
            )


def planar_presets(
    radii: tuple[float, float], quick: ContrastiveSettings, paper: Mapping[str, Any]
) -> dict[str, PlanarConfig]:
    """Return the presets of an experiment.

    Args:
        radii: The radii.
        quick: How models are trained.
        paper: What is different in the paper, beside what both experiments share.
    """
    config = PlanarConfig(radii=radii, fit=quick)
    tiny = dataclasses.replace(
        quick, num_epochs=4, num_steps=4, batch_size=16, sample_steps=40, widths=(8, 8)
    )
    theirs = ContrastiveSettings(
        num_epochs=500, batch_size=32, num_particles=32, num_steps=10_000,
        widths=(32, 64, 64, 64, 32), stein_step_size=0.9, langevin_step_size=0.0,
        reset_to_data=1.0, learning_rate=1e-3, sample_steps=10_000, sample_at_once=128,
        bandwidth=paper["bandwidth"], label_weight=quick.label_weight,
    )  # fmt: skip
    return {
        "smoke": dataclasses.replace(
            config, num_seeds=2, num_data=32, num_test=64, num_samples=16,
            monitor_every=2, fit=tiny,
        ),
        "quick": config,
        "paper": dataclasses.replace(config, fit=theirs, algorithm=paper["algorithm"]),
    }  # fmt: skip


class AbstractPlanarTarget(abc.ABC):
    """A planar density with a symmetry, and what is measured of models of it.

    Attributes:
        group: The symmetry.
        plane: A square that holds all mass, resolved well below its finest detail.
        num_classes: The number of classes, or None.
    """

    group: AbstractGroup
    plane: Plane
    num_classes: int | None = None

    @abc.abstractmethod
    def log_density(self, point) -> Scalar:
        """Return the exact log density, normalized."""

    @abc.abstractmethod
    def sample(self, key: Key, num: int) -> tuple[Particles, Array]:
        """Return points and their labels, to learn from."""

    @abc.abstractmethod
    def exact_samples(self, key: Key, num: int) -> list[Particles]:
        """Return samples of all, and of each class."""

    @abc.abstractmethod
    def log_densities(self, energy: AbstractEnergy | None) -> list[LogDensity]:
        """Return the log density of all, and of each class; None has the exact ones."""

    def of_data(self, data: Particles) -> dict[str, Any]:
        """Return metrics of what a model learns from."""
        return {}

    @abc.abstractmethod
    def of_density(
        self, energy: AbstractEnergy | None, points: Particles, labels: Array
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return metrics of an energy on held-out points, and arrays for figures."""

    @abc.abstractmethod
    def of_samples(
        self, samples: list[Particles], exact: Float[Array, "exact 2"]
    ) -> dict[str, Any]:
        """Return metrics of samples of all, and of each class."""


def planar_entries(
    target: AbstractPlanarTarget, notes: Mapping[str, str], config: PlanarConfig
) -> list[Entry]:
    """Return the exact density, and the three models to compare.

    Only the last two know the symmetry, and only the last one's sampler does.
    """
    stage = functools.partial(_learned, target, config)
    models = (
        ("plain", "plain EBM, SVGD", Trivial(), "plain"),
        ("equivariant-svgd", "equivariant EBM, SVGD", target.group, "plain"),
        ("equivariant", "equivariant EBM, E-SVGD", target.group, "equivariant"),
    )
    return [
        Entry(
            name=FLOOR, label="target", stage=functools.partial(_exact, target, config)
        ),
        *(
            Entry(
                name=name, label=label, note=notes[name], trains=True,
                stage=functools.partial(stage, group, kernel),
            )
            for name, label, group, kernel in models
        ),
    ]  # fmt: skip


def _learned(
    target: AbstractPlanarTarget,
    config: PlanarConfig,
    group: AbstractGroup,
    kernel: str,
    trial: Trial,
) -> Outcome:
    keys = jr.split(trial.key(0), 6)
    data, labels = target.sample(keys[0], config.num_data)
    points, classes = target.sample(keys[1], config.num_test)
    # Nothing exact changes when points are moved by the group.
    moved = jax.vmap(target.group.act)(
        target.group.sample(keys[2], len(points)), points
    )
    energy = energy_for(
        keys[3], group, data, num_classes=target.num_classes, widths=config.fit.widths
    )
    settings = dataclasses.replace(config.fit, kernel=kernel)
    model = contrastive_model(energy, data, labels, settings)
    look = Monitor(likelihood_monitor(target.plane, moved), config.monitor_every)
    fitted = config.algorithm.applied(model, settings, data, labels).fit(
        keys[4], data, labels, callbacks=[look], progress=True,
        checkpoint=trial.checkpoint(),
    )  # fmt: skip
    sample_key, normalizer_key, exact_key = jr.split(keys[5], 3)
    by_ais = fitted.log_normalizer(normalizer_key, num_particles=256, num_steps=1_000)
    numbers = {
        "log_likelihood": fitted.history["log_likelihood"][-1],
        "log_likelihood_by_ais": jnp.mean(fitted.log_likelihood(moved, by_ais)),
        "ais_error_bound": by_ais.error,
        "rollbacks": len(fitted.events),
        "true_log_likelihood": jnp.mean(jax.vmap(target.log_density)(moved)),
        **target.of_data(data),
    }
    kinds = [None, *range(target.num_classes or 0)]
    drawn = [
        fitted.sample(key, config.num_samples, label=label)
        for key, label in zip(jr.split(sample_key, len(kinds)), kinds, strict=True)
    ]
    energy = fitted.energy
    assert isinstance(energy, AbstractEnergy)
    return _outcome(
        target, numbers, drawn, energy, (moved, classes), exact_key,
        history=fitted.history, events=fitted.events,
    )  # fmt: skip


def _exact(target: AbstractPlanarTarget, config: PlanarConfig, trial: Trial) -> Outcome:
    sample_key, exact_key, held_key = jr.split(trial.key(1), 3)
    points, classes = target.sample(held_key, config.num_test)
    numbers = {"log_likelihood": jnp.mean(jax.vmap(target.log_density)(points))}
    drawn = target.exact_samples(sample_key, config.num_samples)
    return _outcome(target, numbers, drawn, None, (points, classes), exact_key)


def _outcome(
    target: AbstractPlanarTarget,
    numbers: dict[str, Any],
    samples: list[Particles],
    energy: AbstractEnergy | None,
    held_out: tuple[Float[Array, "point 2"], Array],
    key: Key,
    **kept: Any,
) -> Outcome:
    exact, _ = target.sample(key, NUM_EXACT)
    found, arrays = target.of_density(energy, *held_out)
    numbers |= found | target.of_samples(samples, exact)
    numbers["energy_distance"] = energy_distance(samples[0], exact)
    arrays["log_density"] = target.plane.draw(target.log_densities(energy), _DRAWN)
    arrays["drawn"] = np.stack([np.asarray(points) for points in samples])
    return seed_outcome(numbers, samples[0], stacked=arrays, **kept)
