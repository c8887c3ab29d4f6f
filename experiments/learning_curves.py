"""What a symmetry buys in data: learning curves of an energy and its twins."""

import dataclasses
import functools
import time

import jax
import jax.numpy as jnp
import jax.random as jr

from equistein.groups import AbstractGroup, Trivial
from equistein.metrics import energy_distance
from equistein.models import ContrastiveSettings, for_data, LinearSettings
from equistein.runs import FLOOR, Metric, Outcome, seed_outcome
from experiments._engine import (
    AbstractConfig,
    Entry,
    Experiment,
    Key,
    Particles,
    Scalar,
    Trial,
)
from experiments._figures import curves
from experiments._planar_config import REWEIGHTED
from experiments._plane import held_out_likelihood
from experiments._sampling import augmented
from experiments.jem_c4 import classes, RADII
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
        fit: How models are trained.
        linear: How the linear energy is fitted, which takes as long as it takes.
    """

    num_seeds: int = 2
    sizes: tuple[int, ...] = (100, 1_000, 10_000)
    seconds: float = 40.0
    num_test: int = 2_000
    num_samples: int = 512
    fit: ContrastiveSettings = dataclasses.replace(REWEIGHTED, batch_size=100)
    linear: LinearSettings = LinearSettings()


def entries(config: LearningCurvesConfig) -> list[Entry]:
    """Return the models and the floor."""
    target = classes(RADII)

    def distance(samples: Particles, key: Key) -> Scalar:
        return energy_distance(samples, target.sample(key, _NUM_EXACT)[0])

    def stage(group: AbstractGroup, augment: bool, trial: Trial) -> Outcome:
        numbers, gaps, samples = {}, [], jnp.zeros((0, 2))
        for num in config.sizes:
            keys = jr.split(jr.fold_in(trial.key(0), num), 8)
            start = time.process_time()
            data, _ = target.sample(keys[0], num)
            if augment:
                copies = max(_COPIES, _AUGMENTED // num)
                data = augmented(keys[1], target.group, data, copies)
            how = config.linear if trial.name.startswith("linear") else config.fit
            model = for_data(keys[2], group, data, settings=how)
            fitted, batches = fit_within(
                keys[3], model, data, config.seconds, config.fit.learning_rate
            )
            seconds = time.process_time() - start
            points, _ = target.sample(keys[4], config.num_test)
            # Held out are all copies of a point, as a density with the symmetry has it.
            elements = target.group.sample(keys[5], len(points))
            points = jax.vmap(target.group.act)(elements, points)
            found = held_out_likelihood(target.plane, points, fitted.energy)
            gaps.append(target.known.log_likelihood(points) - found["log_likelihood"])
            samples = fitted.sample(keys[6], config.num_samples)
            numbers |= {
                f"likelihood_gap_{num}": gaps[-1],
                f"energy_distance_{num}": distance(samples, keys[7]),
                f"batches_{num}": batches,
                f"seconds_{num}": seconds,
            }
        stacked = {"gap": gaps, "sizes": config.sizes}
        return seed_outcome(numbers, samples, stacked=stacked)

    def floor(trial: Trial) -> Outcome:
        keys = jr.split(trial.key(1))
        samples, _ = target.sample(keys[0], config.num_samples)
        apart = distance(samples, keys[1])
        numbers = {f"energy_distance_{num}": apart for num in config.sizes}
        return seed_outcome(numbers, samples)

    models = (
        ("equivariant", target.group, False, "Averaged over quarter turns."),
        ("linear", target.group, False, "An energy linear in waves, by one solve."),
        ("plain", Trivial(), False, "The same network, which sees coordinates."),
        ("augmented", Trivial(), True, "The same, its data turned at random."),
    )
    return [
        Entry(FLOOR, floor, label="as many exact samples", num_seeds=_NUM_FLOORS),
        *(
            Entry(name, functools.partial(stage, group, augment), note, trains=True)
            for name, group, augment, note in models
        ),
    ]


_QUICK = LearningCurvesConfig()
_SIZES = (10, *_QUICK.sizes)

LEARNING_CURVES = Experiment(
    name="learning-curves",
    figure="beyond the paper; the planar density of figure 4",
    summary="what a symmetry buys in data: learned densities by the number of points",
    presets={
        "smoke": LearningCurvesConfig(
            num_seeds=1, sizes=(10, 100), seconds=1e-3, num_test=20, num_samples=16,
            linear=LinearSettings(num_waves=4, sample_steps=8),
            fit=dataclasses.replace(
                _QUICK.fit, num_particles=16, num_steps=2, batch_size=10, widths=(4,)
            ),
        ),
        "quick": _QUICK,
        "paper": dataclasses.replace(_QUICK, num_seeds=5, seconds=60.0),
    },
    metrics={
        f"{name}_{num}": Metric(f"{label}, {num} points", "lower", unit)
        for num in sorted(_SIZES)
        for name, label, unit in (
            ("likelihood_gap", "log-likelihood below the best possible", "nats"),
            ("energy_distance", "distance of samples (energy distance)", ""),
        )
    },
    headlines=tuple(
        f"{name}_{num}"
        for num in (_QUICK.sizes[0], _QUICK.sizes[-1])
        for name in ("likelihood_gap", "energy_distance")
    ),
    entries=entries,
    figures=(
        curves(
            "curves",
            lambda outcome: outcome.arrays.get("gap"),
            "log-likelihood below the exact one (nats)",
            x=lambda outcome: outcome.arrays.get("sizes"),
            x_label="training points",
            log_x=True,
            log_y=True,
        ),
    ),
)  # fmt: skip
