"""What the experiments on analytic densities share."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.random as jr
import numpy as np

from equistein._types import Key, LogDensity, Particles
from equistein.runs import Outcome
from equistein.samplers import AbstractSampler, run

Measure = Callable[..., Mapping[str, Any]]


def sample_each(
    sampler: AbstractSampler,
    log_density: LogDensity,
    starts: Iterable[Particles],
    keys: Iterable[Key],
    measure: Measure,
    *,
    num_steps: int,
    record_every: int | None = None,
) -> Outcome:
    """Run a sampler from several starts and measure where each ends."""
    ends, histories = [], []
    for key, start in zip(keys, starts, strict=True):
        samples = run(
            key, sampler, log_density, start,
            num_steps=num_steps, record_every=record_every,
        )  # fmt: skip
        ends.append(samples.particles)
        histories.append(samples.history)
    return measured(ends, measure, histories)


def measured(
    sets: list[Particles], measure: Measure, histories: list[dict] | None = None
) -> Outcome:
    """Collect the numbers of several sets of particles."""
    compiled = eqx.filter_jit(measure)
    numbers = [compiled(points) for points in sets]
    history = {}
    if histories:
        history = {
            name: np.stack([np.asarray(h[name]) for h in histories])
            for name in histories[0]
        }
    return Outcome(
        metrics={
            name: np.array([float(row[name]) for row in numbers]) for name in numbers[0]
        },
        samples=np.concatenate([np.asarray(points) for points in sets]),
        history=history,
    )


def seed_keys(seed: int, num_seeds: int, purpose: int) -> list[Key]:
    """Return a key for each of the seeds `seed`, `seed + 1`, ... and one purpose."""
    return [jr.fold_in(jr.key(seed + i), purpose) for i in range(num_seeds)]


def density_grid(log_density: LogDensity, reach: float, num: int = 160) -> np.ndarray:
    """Return the density of a planar target on a square grid, for contours."""
    ticks = np.linspace(-reach, reach, num, dtype=np.float32)
    x, y = np.meshgrid(ticks, ticks)
    points = np.stack([x, y], axis=-1).reshape(-1, 2)
    values = jax.vmap(log_density)(jax.numpy.asarray(points))
    return np.exp(np.asarray(values)).reshape(num, num)
