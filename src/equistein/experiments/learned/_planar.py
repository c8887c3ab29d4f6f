"""Learn a planar density, with and without its symmetry: what two experiments share."""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float

from equistein._types import Key, Particles, Scalar
from equistein.energies import AbstractEnergy
from equistein.experiments.engine._checks import AbstractConfig
from equistein.experiments.engine._experiment import Entry, Trial
from equistein.experiments.learned._algorithm_1 import Algorithm1
from equistein.experiments.learned._plane import (
    held_out_likelihood,
    log_densities_of,
    LogDensities,
    Plane,
)
from equistein.groups import AbstractGroup, Trivial
from equistein.metrics import energy_distance
from equistein.models import ContrastiveSettings, for_data
from equistein.runs import FLOOR, Outcome, seed_outcome
from equistein.training import Monitor

REACH = 2.5  # half the side of the plane, over the largest radius
_DRAWN = 140  # points along a side of a density that is drawn
_NUM_EXACT = 4_000


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


def planar_presets(
    quick: PlanarConfig, bandwidth: float, algorithm: Algorithm1
) -> dict[str, PlanarConfig]:
    """Return the presets of an experiment.

    Args:
        quick: The one that shows most in minutes.
        bandwidth: The bandwidth of the kernel in the paper.
        algorithm: The paper's own training.
    """
    tiny = dataclasses.replace(
        quick.fit, num_epochs=4, num_steps=4, batch_size=16, sample_steps=40,
        widths=(8, 8),
    )  # fmt: skip
    theirs = ContrastiveSettings(
        num_epochs=500, batch_size=32, num_particles=32, num_steps=10_000,
        widths=(32, 64, 64, 64, 32), stein_step_size=0.9, langevin_step_size=0.0,
        reset_to_data=1.0, learning_rate=1e-3, sample_steps=10_000, sample_at_once=128,
        bandwidth=bandwidth, label_weight=quick.fit.label_weight,
    )  # fmt: skip
    return {
        "smoke": dataclasses.replace(
            quick, num_seeds=2, num_data=32, num_test=64, num_samples=16,
            monitor_every=2, fit=tiny,
        ),
        "quick": quick,
        "paper": dataclasses.replace(quick, fit=theirs, algorithm=algorithm),
    }  # fmt: skip


@dataclasses.dataclass(frozen=True, kw_only=True)
class PlanarTarget:
    """A planar density with a symmetry, and what is measured of models of it.

    Attributes:
        group: The symmetry.
        plane: A square that holds all mass, resolved well below its finest detail.
        log_densities: The exact ones, normalized, of all and of each class.
        sample: From a key and a number, points and their labels, to learn from.
        exact_samples: From the same, samples of all, and of each class.
        measure: From log densities, samples of all and of each class, held-out points,
            their labels and exact samples: metrics, and arrays for figures.
        of_data: From the points to learn from, metrics of these.
        num_classes: The number of classes, or None.
    """

    group: AbstractGroup
    plane: Plane
    log_densities: LogDensities
    sample: Callable[[Key, int], tuple[Particles, Array]]
    exact_samples: Callable[[Key, int], list[Particles]]
    measure: Callable[..., tuple[dict[str, Any], dict[str, Any]]]
    of_data: Callable[[Particles], dict[str, Any]] = lambda data: {}
    num_classes: int | None = None

    def entries(self, config: PlanarConfig, notes: Sequence[str]) -> list[Entry]:
        """Return the exact density, and the three models to compare, with their notes.

        Only the last two know the symmetry, and only the last one's sampler does.
        """
        models = (
            ("plain", "plain EBM, SVGD", Trivial(), "plain"),
            ("equivariant-svgd", "equivariant EBM, SVGD", self.group, "plain"),
            ("equivariant", "equivariant EBM, E-SVGD", self.group, "equivariant"),
        )
        partial = functools.partial
        entries = [Entry(FLOOR, partial(self._exact, config), label="target")]
        for (name, label, group, kernel), note in zip(models, notes, strict=True):
            stage = partial(self._learned, config, group, kernel)
            entries.append(Entry(name, stage, note, label=label, trains=True))
        return entries

    def _exact(self, config: PlanarConfig, trial: Trial) -> Outcome:
        sample_key, exact_key, held_key = jr.split(trial.key(1), 3)
        points, labels = self.sample(held_key, config.num_test)
        drawn = self.exact_samples(sample_key, config.num_samples)
        numbers = {"log_likelihood": self._log_likelihood(points)}
        return self._outcome(
            exact_key, numbers, self.log_densities, drawn, points, labels
        )

    def _learned(
        self, config: PlanarConfig, group: AbstractGroup, kernel: str, trial: Trial
    ) -> Outcome:
        keys = jr.split(trial.key(0), 6)
        data, labels = self.sample(keys[0], config.num_data)
        points, classes = self.sample(keys[1], config.num_test)
        # Nothing exact changes when points are moved by the group.
        elements = self.group.sample(keys[2], len(points))
        points = jax.vmap(self.group.act)(elements, points)
        settings = dataclasses.replace(config.fit, kernel=kernel)
        model = for_data(keys[3], group, data, labels, settings=settings)
        # A partial's arrays are inputs of the compiled function, not constants in it.
        likelihood = eqx.Partial(held_out_likelihood, self.plane, points)
        fitted = config.algorithm.applied(model, settings.learning_rate).fit(
            keys[4], data, labels, progress=True, checkpoint=trial.checkpoint(),
            callbacks=[Monitor(likelihood, config.monitor_every)],
        )  # fmt: skip
        sample_key, normalizer_key, exact_key = jr.split(keys[5], 3)
        by_ais = fitted.log_normalizer(
            normalizer_key, num_particles=256, num_steps=1_000
        )
        kinds = [None, *range(self.num_classes or 0)]
        drawn = [
            fitted.sample(key, config.num_samples, label=label)
            for key, label in zip(jr.split(sample_key, len(kinds)), kinds, strict=True)
        ]
        numbers = {
            "log_likelihood": fitted.history["log_likelihood"][-1],
            "log_likelihood_by_ais": jnp.mean(fitted.log_likelihood(points, by_ais)),
            "ais_error_bound": by_ais.error,
            "rollbacks": len(fitted.events),
            "true_log_likelihood": self._log_likelihood(points),
            **self.of_data(data),
        }
        assert isinstance(fitted.energy, AbstractEnergy)
        log_densities = log_densities_of(fitted.energy)
        return self._outcome(
            exact_key, numbers, log_densities, drawn, points, classes,
            history=fitted.history, events=fitted.events,
        )  # fmt: skip

    def _log_likelihood(self, points: Particles) -> Scalar:
        return jnp.mean(jax.vmap(self.log_densities)(points)[:, 0])

    def _outcome(
        self,
        key: Key,
        numbers: dict[str, Any],
        log_densities: LogDensities,
        samples: list[Particles],
        points: Float[Array, "point 2"],
        labels: Array,
        **kept: Any,
    ) -> Outcome:
        exact, _ = self.sample(key, _NUM_EXACT)
        found, arrays = self.measure(log_densities, samples, points, labels, exact)
        numbers |= found | {"energy_distance": energy_distance(samples[0], exact)}
        drawn = Plane(self.plane.reach, _DRAWN).values(log_densities)
        normalizers = self.plane.log_normalizers(log_densities)
        arrays |= {
            "log_density": jnp.moveaxis(drawn - normalizers[None, None], -1, 0),
            "drawn": np.stack([np.asarray(points) for points in samples]),
        }
        if self.num_classes:
            arrays["decision"] = jnp.argmax(drawn[..., 1:], axis=-1)
        return seed_outcome(numbers, samples[0], stacked=arrays, **kept)
