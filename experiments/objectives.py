"""All objectives under one budget of time, with the symmetry and without."""

import dataclasses
import functools
import time
from collections.abc import Callable, Collection, Mapping
from typing import Any, ClassVar, Literal

import jax
import jax.numpy as jnp
import jax.random as jr

import equistein as es
from equistein.diffusion import DenoisingScoreMatching, ScoreMatching
from equistein.energies import AbstractEnergy
from equistein.groups import AbstractGroup, Trivial
from equistein.metrics import energy_distance
from equistein.runs import FLOOR, Outcome, seed_outcome
from equistein.samplers import MALA
from experiments._engine import AbstractConfig, Entry, Experiment, Key, Particles, Trial
from experiments._figures import boxes
from experiments._plane import held_out_likelihood
from experiments.dw4 import described, minima, noisy_copies, TARGET
from experiments.jem_c4 import classes, RADII

_EPOCH = 10  # batches


def fit_within(
    key: Key,
    model: Any,
    data: Particles,
    seconds: float,
    learning_rate: float,
) -> tuple[es.training.Fitted, int]:
    """Fit a model in as many batches as take so long; return their number too.

    A linear one is solved for, in no batches. What is counted is the time of all
    processors, without compiling. The learning rate falls over all batches.
    """
    if isinstance(model, es.models.LinearModel):
        return model.fit(key, data), 0
    epochs = max(2, round(seconds / _seconds_of_epoch(key, model, data)))
    optimizer = es.training.adam(learning_rate, epochs * _EPOCH)
    how = dataclasses.replace(model.optimization, optimizer=optimizer)
    model = dataclasses.replace(
        model, num_epochs=epochs, epoch_batches=_EPOCH, optimization=how
    )
    return model.fit(key, data), epochs * _EPOCH


def _seconds_of_epoch(key: Key, model: es.models.Model, data: Particles) -> float:
    """Return how long an epoch takes."""
    how = model.optimization
    optimizer = how.transformation(_EPOCH)
    trainer = es.training.Trainer(
        model.objective, optimizer, model.batch_size, _EPOCH, how.ema
    )
    everything = es.training.Batch(data, None, jnp.arange(len(data)))
    state = trainer.init(key, model.energy, everything)
    jax.block_until_ready(trainer.epoch(state, data))  # compiled
    start = time.process_time()
    jax.block_until_ready(trainer.epoch(state, data))
    return max(time.process_time() - start, 1e-6)


NOTES = {
    "persistent": "Contrastive divergence from persistent particles that E-SVGD moves: "
    "the paper's.",
    "reweighted": "Contrastive divergence from Metropolis-adjusted chains with "
    "weights, drawn by annealed sequential Monte Carlo.",
    "from-data": "Contrastive divergence from short chains that start at the data.",
    "denoising": "Denoising score matching at one level of noise.",
    "levels": "Denoising score matching of one energy over noise levels.",
    "score-matching": "Sliced score matching.",
    "linear": "An energy linear in features, by one solve; in the plane by regression.",
}
"""What each objective is, by its name."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class ObjectivesConfig(AbstractConfig):
    """Settings of `objectives`.

    Attributes:
        data: The density of `jem-c4` in the plane, or noisy minima of DW-4; other
            defaults depend on it.
        objectives: Their names.
        seconds: The processor time of each training.
        num_data: Training points.
        num_test: Held-out points, where the density is known.
        num_samples: Samples drawn from each model, from fresh starts.
        noise: The noise of denoising, or the least, and the width of the finest detail.
        sigma_max: The largest noise of denoising over levels.
        weighted_step_size: The Langevin step of chains with weights, which take a
            quarter of the steps a batch.
        fit: How persistent particles are moved, and all models drawn from, but that
            with weights, and the linear one.
        linear: How the linear one is fitted and drawn from.
    """

    num_seeds: int = 1
    data: Literal["plane", "dw4"] = "plane"
    objectives: tuple[str, ...] = tuple(NOTES)
    seconds: float = 10.0
    num_data: int = 1_000
    num_test: int = 2_000
    num_samples: int = 512
    noise: float
    sigma_max: float
    weighted_step_size: float
    fit: es.models.ContrastiveSettings
    linear: es.models.LinearSettings = es.models.LinearSettings()

    words: ClassVar[Mapping[str, Collection[str]]] = {"objectives": NOTES}

    def settings(
        self, name: str
    ) -> es.models.ContrastiveSettings | es.models.LinearSettings:
        """Return the settings of an objective's model."""
        if name == "linear":
            return self.linear
        if name != "reweighted":
            return self.fit
        return dataclasses.replace(
            self.fit, negatives="reweighted", kernel="independent", regularization=0.0,
            reset_to_data=0.0, num_steps=max(1, self.fit.num_steps // 4),
            langevin_step_size=self.weighted_step_size,
            sample_steps=max(1, self.fit.sample_steps // 5),
        )  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Task:
    """Data with a symmetry, and how models of it are judged.

    Attributes:
        group: The symmetry.
        judge: From a key, an energy (None for the data) and samples, the outcome.
        fresh: From a key and a number, fresh points like the data.
    """

    group: AbstractGroup
    judge: Callable[..., Outcome]
    fresh: Callable[[Key, int], Particles]


def plane_task(config: ObjectivesConfig) -> Task:
    """Return the planar density of `jem-c4`, its classes unknown."""
    target = classes(RADII)

    def fresh(key: Key, num: int) -> Particles:
        return target.sample(key, num)[0]

    def judge(
        key: Key, energy: AbstractEnergy | None, samples: Particles, **numbers: Any
    ) -> Outcome:
        exact_key, held_key = jr.split(key)
        points = fresh(held_key, config.num_test)
        exact = target.known.log_likelihood(points)
        numbers["energy_distance"] = energy_distance(samples, fresh(exact_key, 4_000))
        if energy is not None:
            found = held_out_likelihood(target.plane, points, energy)
            numbers["likelihood_gap"] = exact - found["log_likelihood"]
        return seed_outcome(numbers, samples)

    return Task(target.group, judge, fresh)


def dw4_task(config: ObjectivesConfig) -> Task:
    """Return noisy copies of the five minima of DW-4."""

    def fresh(key: Key, num: int) -> Particles:
        states = minima().points
        return noisy_copies(key, states, -(-num // len(states)), 0.1)

    def judge(
        key: Key, energy: AbstractEnergy | None, samples: Particles, **numbers: Any
    ) -> Outcome:
        outcome = described(fresh(key, config.num_data), samples)
        found = ("energy_w2", "near_a_state", "smallest_fraction", "largest_fraction")
        numbers |= {name: outcome.metrics[name][0] for name in found}
        return seed_outcome(numbers, samples)

    return Task(TARGET.group, judge, fresh)


def objectives_for(
    config: ObjectivesConfig, model: es.models.Model, group: AbstractGroup
) -> Mapping[str, es.training.AbstractObjective]:
    """Return the objectives by name; two of them are the model's own.

    Chains from data are Metropolis-adjusted, with steps for the finest detail.
    """
    noise, num_steps = config.noise, config.fit.num_steps
    chains = MALA(0.2 * noise**2, project=group.project)
    from_data = es.training.ContrastiveDivergence(
        es.training.FromData(chains, num_steps), config.fit.regularization
    )
    return {
        "persistent": model.objective,
        "reweighted": model.objective,
        "from-data": from_data,
        "denoising": DenoisingScoreMatching(noise),
        "levels": DenoisingScoreMatching(noise, config.sigma_max),
        "score-matching": ScoreMatching(),
    }


def entries(config: ObjectivesConfig) -> list[Entry]:
    """Return each objective twice: with the symmetry, and its twin without."""
    task = _TASKS[config.data](config)

    def stage(name: str, group: AbstractGroup, trial: Trial) -> Outcome:
        data_key, key = jr.split(trial.key(0))
        keys = jr.split(key, 4)
        data = task.fresh(data_key, config.num_data)
        settings = config.settings(name)
        model = es.models.for_data(keys[0], group, data, settings=settings)
        if isinstance(model, es.models.Model):
            objective = objectives_for(config, model, group)[name]
            model = dataclasses.replace(model, objective=objective)
        fitted, batches = fit_within(
            keys[1], model, data, config.seconds, config.fit.learning_rate
        )
        samples = fitted.sample(keys[2], config.num_samples)
        return task.judge(keys[3], fitted.energy, samples, batches=batches)

    def floor(trial: Trial) -> Outcome:
        keys = jr.split(trial.key(1))
        samples = task.fresh(keys[0], config.num_samples)[: config.num_samples]
        return task.judge(keys[1], None, samples)

    found = [Entry(FLOOR, floor, label="data", num_seeds=5)]
    for name in config.objectives:
        # Points with their center at 0 have no density in all of their coordinates.
        has_twin = (config.data, name) != ("dw4", "linear")
        for suffix, group in (("", task.group), ("-plain", Trivial()))[: 1 + has_twin]:
            part = functools.partial(stage, name, group)
            text = "Its twin: the network sees coordinates." if suffix else NOTES[name]
            found.append(Entry(name + suffix, part, text, trains=True))
    return found


def _presets(quick: ObjectivesConfig) -> dict[str, ObjectivesConfig]:
    tiny = dataclasses.replace(
        quick.fit, num_steps=2, num_particles=8, batch_size=16, widths=(4,),
        sample_steps=20,
    )  # fmt: skip
    return {
        "smoke": dataclasses.replace(
            quick, objectives=("levels", "from-data", "linear"), seconds=1e-3,
            num_data=20, num_test=20, num_samples=16, fit=tiny,
            linear=es.models.LinearSettings(num_waves=8, sample_steps=8),
        ),
        "quick": quick,
        "paper": dataclasses.replace(quick, num_seeds=5, seconds=60.0),
    }  # fmt: skip


_TASKS = {"plane": plane_task, "dw4": dw4_task}
_PLANE = ObjectivesConfig(
    noise=0.3,
    sigma_max=15.0,
    weighted_step_size=0.1,
    fit=es.models.ContrastiveSettings(
        widths=(64, 64, 64), num_particles=256, num_steps=20,
        langevin_step_size=0.02, stein_step_size=0.02, learning_rate=4e-3,
        reset_to_data=0.9, reset_probability=0.1, sample_steps=1_000,
        sample_at_once=256,
    ),
)  # fmt: skip
_DW4 = ObjectivesConfig(
    data="dw4",
    noise=0.1,
    sigma_max=3.0,
    weighted_step_size=4e-3,
    fit=es.models.ContrastiveSettings(num_steps=30, learning_rate=2e-3),
)
_PRESETS = {"plane": _presets(_PLANE), "dw4": _presets(_DW4)}

OBJECTIVES = Experiment(
    name="objectives",
    figure="beyond the paper; the data of figures 4 and 7",
    headlines=("likelihood_gap", "energy_distance", "energy_w2", "near_a_state"),
    summary="all objectives under one budget of time, in the plane or on DW-4",
    choice="data",
    presets={
        size: {data: presets[size] for data, presets in _PRESETS.items()}
        for size in ("smoke", "quick", "paper")
    },
    entries=entries,
    figures=(
        boxes(
            "likelihood", "likelihood_gap", "log-likelihood below the exact (nats)",
            log=True,
        ),
        boxes("distance", "energy_distance", "energy distance of samples", log=True),
        boxes("energies", "energy_w2", "W2 of the energies", log=True),
        boxes("states", "near_a_state", "fraction near a state"),
    ),
)  # fmt: skip
