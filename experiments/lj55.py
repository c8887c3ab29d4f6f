"""Learn LJ-55 from samples by one solve, and draw new clusters from nothing."""

import dataclasses
import time

import jax.numpy as jnp
import jax.random as jr

from equistein.metrics import virial
from equistein.models import LinearSettings
from equistein.runs import FLOOR, Metric, Outcome
from equistein.samplers import HMC, run
from equistein.training import Fitted
from experiments._engine import AbstractConfig, Entry, Experiment, Key, Particles, Trial
from experiments._figures import configurations, histograms
from experiments._metrics import METRICS
from experiments._systems import described, fit_as_set, reference, SYSTEMS

_SYSTEM = SYSTEMS["lj55"]
_LEAPFROGS, _STEP_SIZE = 16, 0.02  # of a trajectory
_AT_ONCE = 125  # chains, whose distances fit into the cache of a processor


@dataclasses.dataclass(frozen=True, kw_only=True)
class LJ55Config(AbstractConfig):
    """Settings of `lj55`.

    Attributes:
        num_data: Reference samples to learn from, others for each seed.
        num_others: Those to compare with.
        num_samples: Samples drawn from the learned energy.
        sample_steps: Steps of annealed sequential Monte Carlo to draw a sample.
        trajectories: Those of Hamiltonian chains of the learned energy after them.
    """

    num_seeds: int = 1
    num_data: int = 1_000
    num_others: int = 3_000
    num_samples: int = 1_000
    sample_steps: int = 500
    trajectories: int = 400


def continued(key: Key, fitted: Fitted, points: Particles, num: int) -> Particles:
    """Return where Hamiltonian chains of a learned energy end that begin at points."""
    chains = HMC(
        _STEP_SIZE, num_leapfrogs=_LEAPFROGS, num_adapt=max(1, num // 5),
        project=_SYSTEM.target.group.project,
    )  # fmt: skip
    ends = [
        run(
            jr.fold_in(key, first), chains, fitted.log_density,
            points[first : first + _AT_ONCE], num_steps=num, check=False,
        ).particles
        for first in range(0, len(points), _AT_ONCE)
    ]  # fmt: skip
    return jnp.concatenate(ends).block_until_ready()


def entries(config: LJ55Config) -> list[Entry]:
    """Return the energy by one solve, and the floor: what it was learned from."""

    def split(trial: Trial) -> tuple[Particles, Particles]:
        clouds = reference(_SYSTEM, config.num_data + config.num_others, 1)
        clouds = jnp.roll(clouds, -trial.index * config.num_data, axis=0)
        return clouds[: config.num_data], clouds[config.num_data :]

    def describe(trial: Trial, points: Particles, **more: float) -> Outcome:
        virials = {"virial": virial(_SYSTEM.target.log_density, points)}
        return described(_SYSTEM, split(trial)[1], points, virials | more)

    def linear(trial: Trial) -> Outcome:
        data, group = split(trial)[0], _SYSTEM.target.group
        settings = LinearSettings(sample_steps=config.sample_steps)
        start = time.perf_counter()
        fitted, key = fit_as_set(settings, trial, group, data)
        solved = time.perf_counter()
        drawn = fitted.sample(key, config.num_samples)
        samples = continued(key, fitted, drawn, config.trajectories)
        seconds = time.perf_counter() - start
        return describe(trial, samples, solve_seconds=solved - start, seconds=seconds)

    def floor(trial: Trial) -> Outcome:
        return describe(trial, split(trial)[0])

    note = (
        "Gaussians of the logarithm of each distance and powers: one solve of the "
        "score matching equations finds their coefficients. Drawn by annealed "
        "sequential Monte Carlo from a normal density, then by Hamiltonian chains. "
        "Seconds are by the clock, compilation included."
    )
    floors = 1 + config.num_others // config.num_data
    return [
        Entry("linear", linear, note, label="linear energy, one solve", trains=True),
        Entry(FLOOR, floor, label="data", num_seeds=floors),
    ]


LJ55 = Experiment(
    name="lj55",
    figure="beyond the paper",
    headlines=("energy_w2", "distance_tv", "solve_seconds", "seconds"),
    summary="learn LJ-55 from samples by one solve and draw new clusters",
    presets={
        "smoke": LJ55Config(
            num_data=8, num_others=8, num_samples=8, sample_steps=8,
            trajectories=2,
        ),
        "quick": LJ55Config(),
        "paper": LJ55Config(num_seeds=4, trajectories=1_000),
    },
    entries=entries,
    metrics=METRICS
    | {
        "solve_seconds": Metric("seconds until the energy is learned", "lower", "s"),
        "seconds": Metric("seconds until the samples are drawn", "lower", "s"),
        "virial": Metric("mean of -x . grad log p, exactly 162"),
    },
    figures=(
        configurations(8, caption="Clusters as drawn, not aligned."),
        histograms(
            "energies", "energies", "energy in the true potential", bins=64,
            limits=_SYSTEM.energies, line_of=FLOOR,
            caption="Energies in the true potential, which the model never sees. The "
            "line is that of the data.",
        ),
    ),
)  # fmt: skip
