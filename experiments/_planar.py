"""Learned densities in the plane: what `jem-c4` and `ebm-circles` share."""

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float

from equistein.energies import AbstractEnergy
from equistein.groups import AbstractGroup, Trivial
from equistein.metrics import energy_distance
from equistein.models import ContrastiveSettings, for_data
from equistein.plotting import planar_energies
from equistein.runs import FLOOR, Outcome, seed_outcome
from equistein.training import Monitor
from experiments._engine import AbstractConfig, augmented, Entry, Trial
from experiments._family import (
    Algorithm1,
    held_out_likelihood,
    KnownDensity,
    log_densities_of,
    LogDensities,
    Plane,
)
from experiments._figures import AbstractFigure, Curves, Own, Shown
from experiments._types import Key, Particles, Scalar

REWEIGHTED = ContrastiveSettings(
    num_epochs=60, epoch_batches=10, batch_size=128, negatives="reweighted",
    kernel="none", num_particles=512, num_steps=5, widths=(64, 64, 64),
    langevin_step_size=0.1, reset_probability=0.05, learning_rate=4e-3,
    regularization=0.0, ema=0.98,
    sample_steps=100, sample_at_once=512,
)  # fmt: skip
"""Chains with weights, exact in known: nothing else holds the energy back."""

REACH = 2.5  # half the side of the plane, over the largest radius
_COPIES = 100  # of each point, where data is augmented
_DRAWN = 140  # points along a side of a density that is drawn
_NUM_EXACT = 4_000
_FAMILY = (
    "The density's own family, its parameters free, likeliest to give the same points: "
    "what it falls short of the target is what so few points leave open."
)
_REWEIGHTED = (
    "The network of `plain`, against Metropolis-adjusted chains that carry weights, "
    "which are exact.",
    "The same, from a hundred copies of each point, each moved by the group at random.",
    "The equivariant network, against the same chains. likelihood_gap: how far the "
    "held-out likelihood is below that of `family`.",
)


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
        algorithm: What is different in the paper's own training.
    """

    num_data: int = 128
    num_test: int = 2_000
    num_samples: int = 512
    radii: tuple[float, float]
    monitor_every: int = 10
    fit: ContrastiveSettings
    reweighted: ContrastiveSettings
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
        known: The density.
        sample: From a key and a number, points and their labels, to learn from.
        family: From the points to learn from and their labels, the density of the same
            family that is likeliest to give them.
        measure: From log densities, samples of all and of each class, held-out points,
            their labels and exact samples: metrics, and arrays for figures.
        of_data: From the points to learn from, metrics of these.
        num_classes: The number of classes, or None.
    """

    group: AbstractGroup
    plane: Plane
    known: KnownDensity
    sample: Callable[[Key, int], tuple[Particles, Array]]
    family: Callable[[Particles, Array], KnownDensity]
    measure: Callable[..., tuple[dict[str, Any], dict[str, Any]]]
    of_data: Callable[[Particles], dict[str, Any]] = lambda data: {}
    num_classes: int | None = None

    def entries(self, config: PlanarConfig, notes: Sequence[str]) -> list[Entry]:
        """Return what is known of the density, and the models to compare.

        Args:
            config: The configuration.
            notes: Those of the paper's three models: only the last two know the
                symmetry, and only the last one's sampler does.
        """
        partial = functools.partial
        group = self.group
        svgd, kernels = (
            dataclasses.replace(config.fit, kernel=kernel)
            for kernel in ("plain", "equivariant")
        )
        models = (
            ("plain", "plain EBM, SVGD", Trivial(), svgd, 1),
            ("equivariant-svgd", "equivariant EBM, SVGD", group, svgd, 1),
            ("equivariant", "equivariant EBM, E-SVGD", group, kernels, 1),
            ("plain-reweighted", "plain EBM, weights", Trivial(), config.reweighted, 1),
            (
                "augmented-reweighted", "plain EBM, weights, augmented", Trivial(),
                config.reweighted, _COPIES,
            ),
            ("reweighted", "equivariant EBM, weights", group, config.reweighted, 1),
        )  # fmt: skip
        entries = [
            Entry(FLOOR, partial(self._floor, config), label="target"),
            Entry("family", partial(self._family, config), _FAMILY, label="family"),
        ]
        for (name, label, group, settings, copies), note in zip(
            models, (*notes, *_REWEIGHTED), strict=True
        ):
            stage = partial(self._trained, config, group, settings, copies)
            entries.append(Entry(name, stage, note, label=label, trains=True))
        return entries

    def _floor(self, config: PlanarConfig, trial: Trial) -> Outcome:
        sample_key, exact_key, held_key = jr.split(trial.key(1), 3)
        points, labels = self.sample(held_key, config.num_test)
        return self._outcome_of_known(
            config, self.known, sample_key, exact_key, points, labels
        )

    def _family(self, config: PlanarConfig, trial: Trial) -> Outcome:
        data, labels, points, classes = self._drawn_data(config, trial)
        sample_key, exact_key = jr.split(trial.key(2))
        known = self.family(data, labels)
        return self._outcome_of_known(
            config, known, sample_key, exact_key, points, classes
        )

    def _outcome_of_known(
        self,
        config: PlanarConfig,
        known: KnownDensity,
        sample_key: Key,
        exact_key: Key,
        points: Particles,
        labels: Array,
    ) -> Outcome:
        numbers = {"log_likelihood": _log_likelihood(known, points)}
        drawn = known.samples(sample_key, config.num_samples)
        return self._outcome(
            exact_key, numbers, known.log_densities, drawn, points, labels
        )

    def _drawn_data(
        self, config: PlanarConfig, trial: Trial
    ) -> tuple[Particles, Array, Float[Array, "test 2"], Array]:
        """Return a seed's points to learn from and held-out ones, with their labels."""
        keys = jr.split(trial.key(0), 6)
        data, labels = self.sample(keys[0], config.num_data)
        points, classes = self.sample(keys[1], config.num_test)
        # Nothing exact changes when points are moved by the group.
        elements = self.group.sample(keys[2], len(points))
        return data, labels, jax.vmap(self.group.act)(elements, points), classes

    def _trained(
        self,
        config: PlanarConfig,
        group: AbstractGroup,
        settings: ContrastiveSettings,
        copies: int,
        trial: Trial,
    ) -> Outcome:
        keys = jr.split(trial.key(0), 6)
        data, labels, points, classes = self._drawn_data(config, trial)
        seen, known = data, labels
        if copies > 1:
            seen = augmented(trial.key(3), self.group, data, copies)
            known = jnp.repeat(labels, copies)
        model = for_data(keys[3], group, seen, known, settings=settings)
        # A partial's arrays are inputs of the compiled function, not constants in it.
        likelihood = eqx.Partial(held_out_likelihood, self.plane, points)
        if settings.negatives == "persistent":
            model = config.algorithm.applied(model, settings.learning_rate)
        fitted = model.fit(
            keys[4], seen, known, progress=True, checkpoint=trial.checkpoint(),
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
        family = _log_likelihood(self.family(data, labels), points)
        numbers = {
            "likelihood_gap": family - fitted.history["log_likelihood"][-1],
            "log_likelihood": fitted.history["log_likelihood"][-1],
            "log_likelihood_by_ais": jnp.mean(fitted.log_likelihood(points, by_ais)),
            "ais_error_bound": by_ais.error,
            "rollbacks": len(fitted.events),
            "true_log_likelihood": _log_likelihood(self.known, points),
            **self.of_data(data),
        }
        assert isinstance(fitted.energy, AbstractEnergy)
        log_densities = log_densities_of(fitted.energy)
        return self._outcome(
            exact_key, numbers, log_densities, drawn, points, classes,
            history=fitted.history, events=fitted.events,
        )  # fmt: skip

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


def _log_likelihood(known: KnownDensity, points: Particles) -> Scalar:
    return jnp.mean(jax.vmap(known.log_densities)(points)[:, 0])


_SHOWN = 256  # samples
_MARGIN = 5.0  # around the largest radius


def planar_figures(lowest: float) -> tuple[AbstractFigure, ...]:
    """Return the densities side by side, and the curves of the likelihood.

    Args:
        lowest: How far below the exact likelihood the curves are shown.
    """
    return (
        Own(
            "energies",
            _energies,
            caption="The first seed: the density, normalized by quadrature, with "
            "samples from fresh starts; with classes also where each is the likelier.",
        ),
        Curves(
            "likelihood",
            "log_likelihood",
            "held-out log-likelihood (nats)",
            x_label="epoch",
            level="true_log_likelihood",
            level_label="exact",
            limits=lambda level: (level - lowest, level + 0.3),
        ),
    )


def _energies(config: PlanarConfig, shown: Shown) -> Any:
    columns, titles = {}, []
    for entry, outcome in shown:
        arrays = {name: values[0] for name, values in outcome.arrays.items()}
        drawn = zip(arrays["log_density"], arrays["drawn"], strict=True)
        panels = [(np.exp(d), x[:_SHOWN], "density") for d, x in drawn]
        titles = ["p(x)", *(f"p(x | y = {k})" for k in range(len(panels) - 1))]
        if "decision" in arrays:
            panels = [(arrays["decision"], None, "boundary"), *panels]
            titles = ["decision boundary", *titles]
        columns[entry.label] = panels
    reach = max(config.radii)
    return planar_energies(columns, titles, REACH * reach, reach + _MARGIN)


def epochs_to_svgd(
    config: PlanarConfig, outcomes: Mapping[str, Outcome]
) -> dict[str, dict[str, np.ndarray]]:
    """Return how soon each equivariant model is as good as SVGD's is at the end.

    The last likelihood of the equivariant energy trained with vanilla SVGD sets the
    mark, seed by seed; `epochs_to_svgd` is the first epoch looked at that reaches it,
    and `epochs_ratio` that of E-SVGD over that of SVGD. Never is infinity.
    """
    both = ("equivariant-svgd", "equivariant")
    if not all(name in outcomes for name in both):
        return {}
    curves = [outcomes[name].history["log_likelihood"] for name in both]
    num = min(len(curve) for curve in curves)
    steps, marks = outcomes[both[0]].history["step"], curves[0][:num, -1:]
    svgd, ours = (
        np.where(curve[:num] >= marks, steps[:1], np.inf).min(axis=1)
        for curve in curves
    )
    return {
        both[0]: {"epochs_to_svgd": svgd},
        both[1]: {"epochs_to_svgd": ours, "epochs_ratio": ours / svgd},
    }
