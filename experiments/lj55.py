"""Learn LJ-55 from samples by one solve, and draw new clusters."""

import dataclasses
import time

import jax

from equistein.models import LinearSettings
from equistein.runs import FLOOR, Metric, Outcome
from experiments._engine import AbstractConfig, Entry, Experiment, Particles, Trial
from experiments._figures import configurations, histograms
from experiments._metrics import METRICS
from experiments._systems import described, fit_as_set, reference, SYSTEMS

_SYSTEM = SYSTEMS["lj55"]
_DATA, _HELD_OUT = 1, 0  # parts of the reference, shared with `particle-sampling`


@dataclasses.dataclass(frozen=True, kw_only=True)
class LJ55Config(AbstractConfig):
    """Settings of `lj55`.

    Attributes:
        num_reference: Reference configurations to compare with, and as many to learn
            from.
        num_data: Training configurations of a seed.
        num_samples: Samples drawn from the learned energy.
        linear_steps: Steps to draw a sample.
    """

    num_seeds: int = 3
    num_reference: int = 4_000
    num_data: int = 1_000
    num_samples: int = 1_000
    linear_steps: int = 6_000


def entries(config: LJ55Config) -> list[Entry]:
    """Return the linear energy and the floor, samples of the data."""

    def data(trial: Trial, num: int) -> Particles:
        first = trial.index * config.num_data  # each seed learns from others
        return reference(_SYSTEM, config.num_reference, _DATA)[first : first + num]

    def describe(points: Particles, **kept) -> Outcome:
        held_out = reference(_SYSTEM, config.num_reference, _HELD_OUT)
        return described(_SYSTEM, held_out, points, **kept)

    def linear(trial: Trial) -> Outcome:
        points = data(trial, config.num_data)
        settings = LinearSettings(sample_steps=config.linear_steps)
        start = time.perf_counter()
        fitted, key = fit_as_set(settings, trial, _SYSTEM.target.group, points)
        solved = time.perf_counter()
        samples = fitted.sample(key, config.num_samples)
        more = {
            "seconds_to_fit": solved - start,
            "seconds_to_sample": time.perf_counter() - solved,
        }
        samples = jax.vmap(_SYSTEM.target.group.project)(samples)
        return describe(samples, more=more, events=fitted.events)

    return [
        Entry(
            "linear", linear,
            "Gaussians of the logarithm of each distance and powers: one solve of the "
            "score matching equations finds their coefficients. Drawn by annealed "
            "sequential Monte Carlo from a normal density, never from the data.",
            label="linear in functions of distance, one solve", trains=True,
        ),
        Entry(
            FLOOR, lambda trial: describe(data(trial, config.num_samples)),
            label="data", num_seeds=1,
        ),
    ]  # fmt: skip


LJ55 = Experiment(
    name="lj55",
    figure="beyond the paper",
    headlines=("energy_w2", "distance_tv", "seconds_to_fit"),
    summary="learn LJ-55 from samples by one solve and draw new clusters",
    presets={
        "smoke": LJ55Config(
            num_seeds=1, num_reference=16, num_data=16, num_samples=8, linear_steps=8
        ),
        "quick": LJ55Config(),
        "paper": LJ55Config(num_reference=12_000, num_data=4_000, linear_steps=12_000),
    },
    entries=entries,
    metrics=METRICS
    | {
        "seconds_to_fit": Metric("time of the fit", "lower", "s"),
        "seconds_to_sample": Metric("time to draw the samples", "lower", "s"),
    },
    figures=(
        configurations(4, 4.0, caption="Configurations as drawn."),
        histograms(
            "energies",
            "energies",
            "energy in the true potential",
            limits=(-380.0, -260.0),
            caption="Energies in the true potential, which the model never sees.",
        ),
    ),
)
