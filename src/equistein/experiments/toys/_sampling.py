"""What the experiments on analytic densities share."""

from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np

from equistein._types import Key, LogDensity, Particles
from equistein.experiments.engine._experiment import Entry, Stage, Trial
from equistein.experiments.engine._outcomes import seed_outcome
from equistein.kernels import AbstractKernel
from equistein.runs import FLOOR, Outcome
from equistein.samplers import (
    AbstractSampler,
    Geometric,
    run,
    SVGD,
    thermal,
    vector_adam,
)

Measure = Callable[..., Mapping[str, Any]]
"""What gives the metrics of particles; it should be compiled."""


def sampled(
    sampler: AbstractSampler,
    log_density: LogDensity,
    start: Callable[[Key], Particles],
    measure: Measure,
    *,
    num_steps: int,
    record_every: int | None = None,
) -> Stage:
    """Return the stage that runs a sampler from a random start and measures its end."""

    def stage(trial: Trial) -> Outcome:
        samples = run(
            trial.key(1), sampler, log_density, start(trial.key(0)),
            num_steps=num_steps, record_every=record_every,
        )  # fmt: skip
        metrics = measure(samples.particles)
        return seed_outcome(metrics, samples.particles, history=samples.history)

    return stage


def floor_of(
    sample: Callable[[Key], Particles], measure: Measure, num_seeds: int = 100
) -> Entry:
    """Return the floor: sets of exact samples, as large as a sampler's."""

    def stage(trial: Trial) -> Outcome:
        points = sample(trial.key(2))
        return seed_outcome(measure(points), points)

    return Entry(name=FLOOR, label="exact samples", stage=stage, num_seeds=num_seeds)


def annealed_svgd(kernel: AbstractKernel, num_steps: int, step_size: float) -> SVGD:
    """Return SVGD from hot to the target in equal factors of the temperature.

    While hot, the modes overlap: mass moves between them and the start is forgotten.
    Their weights freeze where the barrier closes, by when the tempered weights are
    close to the exact ones. Normalized steps (no momentum) of a fixed fraction of the
    thermal width keep the particles moving at every temperature.

    Args:
        kernel: The kernel.
        num_steps: The number of steps of the whole run; 80 % of them anneal.
        step_size: The step size at the target, in the units of the points.
    """
    annealing = Geometric(max(1, round(0.8 * num_steps)), start=0.01)
    rate = thermal(step_size, annealing, num_steps)
    return SVGD(kernel, vector_adam(rate, b1=0.0, b2=0.9), annealing=annealing)


def density_grid(log_density: LogDensity, reach: float, num: int = 160) -> np.ndarray:
    """Return the density of a planar target on a square grid, for contours."""
    ticks = np.linspace(-reach, reach, num, dtype=np.float32)
    x, y = np.meshgrid(ticks, ticks)
    points = np.stack([x, y], axis=-1).reshape(-1, 2)
    values = jax.vmap(log_density)(jax.numpy.asarray(points))
    return np.exp(np.asarray(values)).reshape(num, num)
