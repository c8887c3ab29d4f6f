"""What the experiments on analytic densities share."""

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import Any

import equinox as eqx
import jax
import numpy as np
import optax
from jaxtyping import Array, Int

from equistein._types import Key, LogDensity, Particles
from equistein.experiments.engine._checks import AbstractConfig
from equistein.experiments.engine._experiment import Entry, Stage, Trial
from equistein.kernels import AbstractKernel
from equistein.runs import FLOOR, Outcome, seed_outcome
from equistein.samplers import Geometric, run, SVGD, thermal, vector_adam
from equistein.targets import AbstractTarget


@dataclasses.dataclass(frozen=True, kw_only=True)
class SamplingConfig(AbstractConfig):
    """Settings of samplers side by side.

    Attributes:
        num_particles: The number of particles.
        num_steps: The number of SVGD steps.
        step_size: The step size of the samplers that have none of their own.
    """

    num_particles: int = 50
    num_steps: int = 25_000
    step_size: float = 0.02


@dataclasses.dataclass(frozen=True, kw_only=True)
class ToyConfig(SamplingConfig):
    """Settings of an experiment on an analytic density.

    Attributes:
        bandwidth: The bandwidth of the samplers that have none of their own.
    """

    bandwidth: float = 0.2


@dataclasses.dataclass(frozen=True, kw_only=True)
class Toy:
    """A density, and how samplers are compared on it.

    Attributes:
        target: The density.
        start: From a key and a number, random particles.
        measure: From the target, numbers of exact samples and some particles, the
            metrics of these.
        exact: What gives the numbers of exact samples.
        floor: From a trial and a number, other exact samples; by default the target's.
        num_floors: The number of their sets.
    """

    target: AbstractTarget
    start: Callable[[Key, int], Particles]
    measure: Callable[[Any, Array, Particles], Mapping[str, Any]]
    exact: Callable[[], Array]
    floor: Callable[[Trial, int], Particles] | None = None
    num_floors: int = 100

    def entries(
        self,
        config: SamplingConfig,
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

        @functools.cache
        def measure() -> Callable[[Particles], Mapping[str, Any]]:
            # A partial's arrays are inputs of the compiled function, not constants.
            known = eqx.Partial(self.measure, self.target, self.exact())
            return eqx.filter_jit(known)

        def sampled(sampler: AbstractKernel | SVGD, num: int) -> Stage:
            if isinstance(sampler, AbstractKernel):
                sampler = SVGD(sampler, optax.sgd(config.step_size))

            def stage(trial: Trial) -> Outcome:
                start = self.start(trial.key(0), num)
                samples = run(
                    trial.key(1), sampler, self.target.log_density, start,
                    num_steps=config.num_steps, record_every=record_every,
                )  # fmt: skip
                points = samples.particles
                return seed_outcome(measure()(points), points, history=samples.history)

            return stage

        def floor(trial: Trial) -> Outcome:
            draw = self.floor or (lambda trial, n: self.target.sample(trial.key(2), n))
            points = draw(trial, num)
            return seed_outcome(measure()(points), points)

        num, sizes = config.num_particles, sizes or {}
        return [
            *(
                Entry(
                    name=name, stage=sampled(sampler, sizes.get(name, num)), note=note
                )
                for name, (sampler, note) in samplers.items()
            ),
            Entry(
                name=FLOOR,
                label="exact samples",
                stage=floor,
                num_seeds=self.num_floors,
            ),
        ]


def annealed_svgd(
    kernel: AbstractKernel,
    num_steps: int | Int[Array, ""],
    step_size: float,
    annealing: Geometric | None = None,
    **more: Any,
) -> SVGD:
    """Return SVGD from hot to the target in equal factors of the temperature.

    While hot, the modes overlap: mass moves between them and the start is forgotten.
    Their weights freeze where the barrier closes, by when the tempered weights are
    close to the exact ones. Normalized steps (no momentum) of a fixed fraction of the
    thermal width keep the particles moving at every temperature.

    Args:
        kernel: The kernel.
        num_steps: The number of steps of the whole run.
        step_size: The step size at the target, in the units of the points.
        annealing: The temperatures; by default 80 % of the steps anneal.
        more: Further arguments of `SVGD`.
    """
    if annealing is None:
        annealing = Geometric(max(1, round(0.8 * num_steps)), start=0.01)
    rate = thermal(step_size, annealing, num_steps)
    adam = vector_adam(rate, b1=0.0, b2=0.9)
    return SVGD(kernel, adam, annealing=annealing, **more)


def density_grid(log_density: LogDensity, reach: float, num: int = 160) -> np.ndarray:
    """Return the density of a planar target on a square grid, for contours."""
    ticks = np.linspace(-reach, reach, num, dtype=np.float32)
    x, y = np.meshgrid(ticks, ticks)
    points = np.stack([x, y], axis=-1).reshape(-1, 2)
    values = jax.vmap(log_density)(jax.numpy.asarray(points))
    return np.exp(np.asarray(values)).reshape(num, num)
