"""What a symmetry buys in data: learning curves of an energy and its twins."""

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import jax.random as jr

from equistein.energies import AbstractEnergy
from equistein.groups import AbstractGroup, Trivial
from equistein.metrics import energy_distance
from equistein.models import ContrastiveSettings, for_data
from equistein.runs import FLOOR, Metric, Outcome, seed_outcome
from experiments._engine import AbstractConfig, augmented, Entry, Experiment, Trial
from experiments._family import held_out_likelihood
from experiments._figures import Curves
from experiments._planar import REWEIGHTED
from experiments._types import Key, Particles
from experiments.jem_c4 import classes
from experiments.objectives import fit_within

_AUGMENTED = 20_000  # points at least, where data is augmented
_COPIES = 4  # of each point at least
_NUM_EXACT = 4_000
_NUM_FLOORS = 5


@dataclasses.dataclass(frozen=True, kw_only=True)
class LearningCurvesConfig(AbstractConfig):
    """Settings of `learning-curves`.

    Attributes:
        sizes: The numbers of training points.
        seconds: The processor time of each training.
        num_test: Held-out points.
        num_samples: Samples drawn from each model.
        radii: The distance from the origin of the modes of each class.
        fit: How models are trained.
    """

    num_seeds: int = 2
    sizes: tuple[int, ...] = (100, 1_000, 10_000)
    seconds: float = 40.0
    num_test: int = 2_000
    num_samples: int = 512
    radii: tuple[float, float] = (7.0, 15.0)
    fit: ContrastiveSettings = dataclasses.replace(REWEIGHTED, batch_size=100)


def entries(config: LearningCurvesConfig) -> list[Entry]:
    """Return the models and the floor."""
    target = classes(config.radii)

    def learned(
        group: AbstractGroup, augment: bool, num: int, key: Key
    ) -> tuple[dict[str, Any], Particles]:
        """Return how good a model of so many points is, and samples of it."""
        keys = jr.split(key, 8)
        data, _ = target.sample(keys[0], num)
        if augment:
            copies = max(_COPIES, _AUGMENTED // num)
            data = augmented(keys[1], target.group, data, copies)
        model = for_data(keys[2], group, data, settings=config.fit)
        fitted, batches = fit_within(
            keys[3], model, data, config.seconds, config.fit.learning_rate
        )
        points, _ = target.sample(keys[4], config.num_test)
        # Held out are all copies of a point, as a density with the symmetry has it.
        moved = jax.vmap(target.group.act)(
            target.group.sample(keys[5], len(points)), points
        )
        exact = jax.vmap(lambda x: target.known.log_densities(x)[0])(moved).mean()
        assert isinstance(fitted.energy, AbstractEnergy)
        found = held_out_likelihood(target.plane, moved, fitted.energy)
        samples = fitted.sample(keys[6], config.num_samples)
        distance = energy_distance(samples, target.sample(keys[7], _NUM_EXACT)[0])
        return {
            "likelihood_gap": exact - found["log_likelihood"],
            "energy_distance": distance,
            "batches": batches,
        }, samples

    def stage(group: AbstractGroup, augment: bool, trial: Trial) -> Outcome:
        numbers, samples = {}, jnp.zeros((0, 2))
        for num in config.sizes:
            found, samples = learned(group, augment, num, jr.fold_in(trial.key(0), num))
            numbers |= {f"{name}_{num}": value for name, value in found.items()}
        gaps = jnp.stack([numbers[f"likelihood_gap_{num}"] for num in config.sizes])
        sizes = jnp.asarray(config.sizes, gaps.dtype)
        return seed_outcome(numbers, samples, stacked={"gap": gaps, "sizes": sizes})

    models = (
        ("equivariant", target.group, False, "Averaged over quarter turns."),
        ("plain", Trivial(), False, "The same network, which sees coordinates."),
        (
            "augmented",
            Trivial(),
            True,
            "The same, and its data moved by random quarter turns.",
        ),
    )

    def floor(trial: Trial) -> Outcome:
        keys = jr.split(trial.key(1))
        samples, _ = target.sample(keys[0], config.num_samples)
        distance = energy_distance(samples, target.sample(keys[1], _NUM_EXACT)[0])
        numbers = {f"energy_distance_{num}": distance for num in config.sizes}
        return seed_outcome(numbers, samples)

    return [
        Entry(FLOOR, floor, label="as many exact samples", num_seeds=_NUM_FLOORS),
        *(
            Entry(name, functools.partial(stage, group, augment), note, trains=True)
            for name, group, augment, note in models
        ),
    ]


_QUICK = LearningCurvesConfig()
_TINY = dataclasses.replace(
    _QUICK.fit, num_particles=16, num_steps=2, batch_size=10, widths=(4,)
)

_SIZES = (*_QUICK.sizes, 10, 20)
METRICS = {
    f"{name}_{num}": Metric(f"{label}, {num} points", "lower", unit)
    for num in sorted(_SIZES)
    for name, label, unit in (
        ("likelihood_gap", "log-likelihood below the best possible", "nats"),
        ("energy_distance", "distance of samples (energy distance)", ""),
    )
}

LEARNING_CURVES = Experiment(
    name="learning-curves",
    figure="beyond the paper; the planar density of figure 4",
    summary="what a symmetry buys in data: learned densities by the number of points",
    presets={
        "smoke": LearningCurvesConfig(
            num_seeds=1,
            sizes=(10, 20),
            seconds=1e-3,
            num_test=20,
            num_samples=16,
            fit=_TINY,
        ),
        "quick": _QUICK,
        "paper": dataclasses.replace(_QUICK, num_seeds=5, seconds=60.0),
    },
    metrics=METRICS,
    headlines=tuple(
        f"{name}_{num}"
        for num in (_QUICK.sizes[0], _QUICK.sizes[-1])
        for name in ("likelihood_gap", "energy_distance")
    ),
    entries=entries,
    figures=(
        Curves(
            "curves",
            lambda outcome: outcome.arrays.get("gap"),
            "log-likelihood below the exact one (nats)",
            x=lambda outcome: outcome.arrays.get("sizes"),
            x_label="training points",
            log_x=True,
            log_y=True,
        ),
    ),
)
