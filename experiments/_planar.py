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
from jaxtyping import Array

import equistein as es
from equistein.plotting import planar_energies
from equistein.runs import FLOOR, Outcome, seed_outcome
from experiments._engine import Entry, Figure, Key, Keys, Particles, Shown, Trial
from experiments._figures import curves
from experiments._planar_config import Algorithm1, PlanarConfig
from experiments._plane import (
    held_out_likelihood,
    KnownDensity,
    Labeled,
    log_densities_of,
    LogDensities,
    Plane,
)
from experiments._sampling import augmented

REACH = 2.5  # half the side of the plane, over the largest radius
_COPIES = 100  # of each point, where data is augmented
_DRAWN = 140  # points along a side of a density that is drawn
_NUM_EXACT = 4_000
_SHOWN = 256  # samples in a figure
_MARGIN = 5.0  # of a figure, around the largest radius
_FAMILY = (
    "The density's own family, its parameters free, likeliest to give the same points: "
    "what it falls short of the target is what so few points leave open."
)
_EPOCHS = (
    "epochs_ratio: the epochs until its held-out likelihood is that of "
    "equivariant-svgd at the end, over the epochs that one needs for it."
)
_REWEIGHTED = (
    "The network of `plain`, against Metropolis-adjusted chains that carry weights, "
    "which are exact.",
    "The same, from a hundred copies of each point, each moved by the group at random.",
    "The equivariant network, against the same chains. likelihood_gap: how far the "
    "held-out likelihood is below that of `family`.",
    "An energy linear in waves averaged over the group, by one logistic regression.",
)


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
        algorithm: How the paper trains.
        of_data: From the points to learn from, metrics of these.
        num_classes: The number of classes.
    """

    group: es.groups.AbstractGroup
    plane: Plane
    known: KnownDensity
    sample: Callable[[Key, int], Labeled]
    family: Callable[[Particles, Array], KnownDensity]
    measure: Callable[..., tuple[dict[str, Any], dict[str, Any]]]
    algorithm: Algorithm1
    of_data: Callable[[Particles], dict[str, Any]] = lambda data: {}
    num_classes: int = 0

    def entries(self, config: PlanarConfig, notes: Sequence[str]) -> list[Entry]:
        """Return what is known of the density, and the models to compare.

        The notes are those of the paper's three models: only the last two know the
        symmetry, and only the last one's sampler does.
        """
        notes = (*notes[:-1], f"{notes[-1]} {_EPOCHS}")
        group, weighted = self.group, config.reweighted
        svgd, kernels = (
            dataclasses.replace(config.fit, kernel=kernel)
            for kernel in ("plain", "equivariant")
        )
        models = (
            ("plain", "plain EBM, SVGD", es.groups.Trivial(), svgd),
            ("equivariant-svgd", "equivariant EBM, SVGD", group, svgd),
            ("equivariant", "equivariant EBM, E-SVGD", group, kernels),
            ("plain-reweighted", "plain EBM, weights", es.groups.Trivial(), weighted),
            (
                "augmented-reweighted", "plain EBM, weights, augmented",
                es.groups.Trivial(), weighted,
            ),
            ("reweighted", "equivariant EBM, weights", group, weighted),
            ("linear", "linear energy", group, config.linear),
        )  # fmt: skip

        def floor(trial: Trial) -> Outcome:
            *keys, held_key = jr.split(trial.key(1), 3)
            held_out = self.sample(held_key, config.num_test)
            return self.of_known(config, self.known, keys, held_out)

        def family(trial: Trial) -> Outcome:
            data, held_out = self.draw_data(config, trial)
            keys = jr.split(trial.key(2))
            return self.of_known(config, self.family(*data), keys, held_out)

        return [
            Entry(FLOOR, floor, label="target"),
            Entry("family", family, _FAMILY),
            *(
                Entry(
                    name, functools.partial(self._trained, config, symmetry, settings),
                    note, label=label, trains=True,
                )
                for (name, label, symmetry, settings), note in zip(
                    models, (*notes, *_REWEIGHTED), strict=True
                )
            ),
        ]  # fmt: skip

    def draw_data(self, config: PlanarConfig, trial: Trial) -> tuple[Labeled, Labeled]:
        """Return a seed's points to learn from, and those held out."""
        keys = jr.split(trial.key(0), 6)
        data = self.sample(keys[0], config.num_data)
        points, classes = self.sample(keys[1], config.num_test)
        # Nothing exact changes when points are moved by the group.
        elements = self.group.sample(keys[2], len(points))
        return data, (jax.vmap(self.group.act)(elements, points), classes)

    def _trained(
        self,
        config: PlanarConfig,
        group: es.groups.AbstractGroup,
        settings: es.models.AbstractSettings,
        trial: Trial,
    ) -> Outcome:
        keys = jr.split(trial.key(0), 6)
        (data, labels), held_out = self.draw_data(config, trial)
        seen, known, points = data, labels, held_out[0]
        if trial.name.startswith("augmented"):
            seen = augmented(trial.key(3), self.group, data, _COPIES)
            known = jnp.repeat(labels, _COPIES)
        if isinstance(settings, es.models.LinearSettings) and not self.num_classes:
            known = None
        model = es.models.for_data(keys[3], group, seen, known, settings=settings)
        # A partial's arrays are inputs of the compiled function, not constants in it.
        likelihood = eqx.Partial(held_out_likelihood, self.plane, points)
        by_contrast = isinstance(settings, es.models.ContrastiveSettings)
        if by_contrast and config.as_in_paper and settings.negatives == "persistent":
            assert isinstance(model, es.models.Model)
            model = self.algorithm.applied(model, settings.learning_rate)
        fitted = model.fit(
            keys[4], seen, known, progress=True, checkpoint=trial.checkpoint(),
            callbacks=[es.training.Monitor(likelihood, config.monitor_every)],
        )  # fmt: skip
        sample_key, _, exact_key = jr.split(keys[5], 3)
        kinds = [None, *range(self.num_classes)]
        drawn = [
            fitted.sample(key, config.num_samples, label=label)
            for key, label in zip(jr.split(sample_key, len(kinds)), kinds, strict=True)
        ]
        reached = likelihood(fitted.energy)["log_likelihood"]
        if fitted.history:
            reached = fitted.history["log_likelihood"][-1]
        possible = self.family(data, labels).log_likelihood(points)
        numbers = {
            "likelihood_gap": possible - reached,
            "log_likelihood": reached,
            "rollbacks": len(fitted.events),
            "true_log_likelihood": self.known.log_likelihood(points),
            **self.of_data(data),
        }
        return self._outcome(
            exact_key, numbers, log_densities_of(fitted.energy), drawn, held_out,
            history=fitted.history, events=fitted.events,
        )  # fmt: skip

    def of_known(
        self,
        config: PlanarConfig,
        known: KnownDensity,
        keys: Sequence[Key] | Keys,
        held_out: Labeled,
    ) -> Outcome:
        """Return the outcome of a density that is known."""
        numbers = {"log_likelihood": known.log_likelihood(held_out[0])}
        drawn = known.samples(keys[0], config.num_samples)
        return self._outcome(keys[1], numbers, known.log_densities, drawn, held_out)

    def _outcome(
        self,
        key: Key,
        numbers: dict[str, Any],
        log_densities: LogDensities,
        samples: list[Particles],
        held_out: Labeled,
        **kept: Any,
    ) -> Outcome:
        exact, _ = self.sample(key, _NUM_EXACT)
        found, arrays = self.measure(log_densities, samples, *held_out, exact)
        numbers |= found | {
            "energy_distance": es.metrics.energy_distance(samples[0], exact)
        }
        drawn = Plane(self.plane.reach, _DRAWN).values(log_densities)
        normalizers = self.plane.log_normalizers(log_densities)
        arrays |= {
            "log_density": jnp.moveaxis(drawn - normalizers[None, None], -1, 0),
            "drawn": np.stack([np.asarray(points) for points in samples]),
        }
        if self.num_classes:
            arrays["decision"] = jnp.argmax(drawn[..., 1:], axis=-1)
        return seed_outcome(numbers, samples[0], stacked=arrays, **kept)


def planar_figures(lowest: float) -> tuple[Figure, ...]:
    """Return the densities side by side, and the curves of the likelihood.

    The curves are shown from so far below the exact likelihood on.
    """
    return (
        Figure(
            "energies",
            _energies,
            "The first seed: the density, normalized by quadrature, with samples from "
            "fresh starts; with classes also where each is the likelier.",
        ),
        curves(
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
    likelihoods = [outcomes[name].history["log_likelihood"] for name in both]
    num = min(map(len, likelihoods))
    steps, marks = outcomes[both[0]].history["step"], likelihoods[0][:num, -1:]
    svgd, ours = (
        np.where(each[:num] >= marks, steps[:1], np.inf).min(axis=1)
        for each in likelihoods
    )
    return {
        both[0]: {"epochs_to_svgd": svgd},
        both[1]: {"epochs_to_svgd": ours, "epochs_ratio": ours / svgd},
    }
