"""What the experiments on analytic densities share."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import equinox as eqx
import jax
import numpy as np
import optax
from jaxtyping import Array

from equistein._types import Key, LogDensity, Particles
from equistein.experiments.engine._checks import AbstractConfig
from equistein.experiments.engine._experiment import Entry, Stage, Trial
from equistein.kernels import AbstractKernel
from equistein.runs import FLOOR, Outcome, seed_outcome
from equistein.samplers import (
    AbstractSampler,
    Geometric,
    run,
    SVGD,
    thermal,
    vector_adam,
)
from equistein.targets import AbstractTarget

Measure = Callable[..., Mapping[str, Any]]
"""What gives the metrics of particles; it should be compiled."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class ToyConfig(AbstractConfig):
    """Settings of an experiment on an analytic density.

    Attributes:
        num_particles: The number of particles.
        num_steps: The number of SVGD steps.
        step_size: The step size of the samplers that have none of their own.
        bandwidth: The bandwidth of those that have none of their own.
    """

    num_particles: int = 50
    num_steps: int = 25_000
    step_size: float = 0.02
    bandwidth: float = 0.2


@dataclasses.dataclass(frozen=True, kw_only=True)
class Toy:
    """An analytic density, and how samplers are compared on it.

    Attributes:
        target: The density.
        start: From a key and a number, random particles.
        measure: From numbers of exact samples and some particles, the metrics of these.
        exact: The numbers of exact samples.
    """

    target: AbstractTarget
    start: Callable[[Key, int], Particles]
    measure: Measure
    exact: Array

    def entries(
        self,
        config: ToyConfig,
        samplers: Mapping[str, tuple[AbstractKernel | SVGD, str]],
        *,
        sizes: Mapping[str, int] | None = None,
        record_every: int | None = None,
    ) -> list[Entry]:
        """Return the samplers, and the floor: sets of exact samples.

        Args:
            config: The settings.
            samplers: For each name SVGD or, for the step size of the settings, just its
                kernel; and a note.
            sizes: The number of particles, where it is not that of the settings.
            record_every: The number of steps between two records.
        """
        # A partial's arrays are inputs of the compiled function, not constants in it.
        measure = eqx.filter_jit(eqx.Partial(self.measure, self.exact))
        num, density = config.num_particles, self.target.log_density

        def stage(name: str, sampler: AbstractKernel | SVGD) -> Stage:
            if isinstance(sampler, AbstractKernel):
                sampler = SVGD(sampler, optax.sgd(config.step_size))
            size = (sizes or {}).get(name, num)
            return sampled(
                sampler, density, lambda key: self.start(key, size), measure,
                num_steps=config.num_steps, record_every=record_every,
            )  # fmt: skip

        def floor(trial: Trial) -> Outcome:
            points = self.target.sample(trial.key(2), num)
            return seed_outcome(measure(points), points)

        return [
            *(
                Entry(name=name, stage=stage(name, sampler), note=note)
                for name, (sampler, note) in samplers.items()
            ),
            Entry(name=FLOOR, label="exact samples", stage=floor, num_seeds=100),
        ]


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
