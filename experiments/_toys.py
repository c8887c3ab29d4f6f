"""What the experiments on analytic densities share."""

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float

from equistein.kernels import AbstractKernel
from equistein.plotting import planar_samples
from equistein.runs import FLOOR, Outcome, seed_outcome
from equistein.samplers import run, Samples, SVGD
from equistein.targets import AbstractTarget
from experiments._engine import AbstractConfig, Entry, Stages, Trial
from experiments._figures import Shown
from experiments._types import Key, Keys, Particles


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

        @functools.partial(jax.jit, static_argnums=1)
        def starts(keys: Keys, num: int) -> Float[Array, "run particle *shape"]:
            return jax.vmap(lambda key: self.start(key, num))(keys)

        def sampled(sampler: AbstractKernel | SVGD, num: int) -> Stages:
            if isinstance(sampler, AbstractKernel):
                sampler = SVGD(sampler, optax.sgd(config.step_size))

            def stages(trials: Sequence[Trial]) -> list[Outcome]:
                start = starts(jnp.stack([trial.key(0) for trial in trials]), num)
                keys = jnp.stack([trial.key(1) for trial in trials])
                samples = run(
                    keys, sampler, self.target.log_density, start,
                    num_steps=config.num_steps, record_every=record_every,
                    progress=True,
                )  # fmt: skip
                return [outcome(samples[seed]) for seed in range(len(trials))]

            return stages

        def outcome(samples: Samples) -> Outcome:
            points = samples.particles
            return seed_outcome(measure()(points), points, history=samples.history)

        def floor(trial: Trial) -> Outcome:
            draw = self.floor or (lambda trial, n: drawn(self.target, trial.key(2), n))
            points = draw(trial, num)
            return seed_outcome(measure()(points), points)

        num, sizes = config.num_particles, sizes or {}
        return [
            *(
                Entry(name, sampled(sampler, sizes.get(name, num)), note, together=True)
                for name, (sampler, note) in samplers.items()
            ),
            Entry(FLOOR, floor, label="exact samples", num_seeds=self.num_floors),
        ]


@eqx.filter_jit
def drawn(target: AbstractTarget, key: Key, num: int) -> Particles:
    """Draw exact samples, by one compiled program."""
    return target.sample(key, num)


def planar_figure(
    config: SamplingConfig,
    shown: Shown,
    target: AbstractTarget,
    reach: float,
    views: Callable[[Any], Sequence[np.ndarray]] = lambda points: [points],
    titles: Sequence[str] = ("samples",),
) -> Any:
    """Return the particles of the first seed, over contours of the exact density."""
    first = {e.label: views(o.samples[: config.num_particles]) for e, o in shown}
    return planar_samples(first, titles, density_on_grid(target, reach, 160), reach)


def density_on_grid(
    target: AbstractTarget, reach: float, num: int
) -> Float[np.ndarray, "num num"]:
    """Return the density of a target in the plane on a square grid."""
    ticks = jnp.linspace(-reach, reach, num)
    grid = jnp.stack(jnp.meshgrid(ticks, ticks), axis=-1)
    logs = jax.jit(jax.vmap(jax.vmap(target.log_density)))(grid)
    return np.asarray(jnp.exp(logs))
