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
from jaxtyping import Array

from equistein.kernels import AbstractKernel
from equistein.plotting import planar_samples
from equistein.runs import FLOOR, Outcome, seed_outcome
from equistein.samplers import run, SVGD
from equistein.targets import AbstractTarget
from experiments._engine import (
    AbstractConfig,
    Entry,
    Key,
    Keys,
    Particles,
    Shown,
    side_by_side,
    Stages,
    Starts,
    Trial,
)

_NUM_FLOORS = 100


@dataclasses.dataclass(frozen=True, kw_only=True)
class ToyConfig(AbstractConfig):
    """Settings of an experiment on an analytic density.

    Attributes:
        num_particles: The number of particles.
        num_steps: The number of SVGD steps.
        step_size: The step size of the samplers that have none of their own.
        bandwidth: The bandwidth of the samplers that have none of their own.
    """

    num_particles: int = 50
    num_steps: int = 25_000
    step_size: float = 0.02
    bandwidth: float = 0.2


@dataclasses.dataclass(frozen=True)
class Toy:
    """A density, and how samplers are compared on it.

    Attributes:
        target: The density.
        start: From a key and a number, random particles.
        measure: From the target, numbers of exact samples and some particles, the
            metrics of these.
        exact: What gives the numbers of exact samples.
    """

    target: AbstractTarget
    start: Callable[[Key, int], Particles]
    measure: Callable[[Any, Array, Particles], Mapping[str, Any]]
    exact: Callable[[], Array]

    def entries(
        self,
        config: ToyConfig,
        samplers: Mapping[str, tuple[AbstractKernel | SVGD, str]],
        *,
        sizes: Mapping[str, int] | None = None,
        record_every: int | None = None,
    ) -> list[Entry]:
        """Return the samplers, and the floor: sets of exact samples.

        A sampler is SVGD or, for the step size of the settings, just its kernel, with a
        note; `sizes` are numbers of particles other than that of the settings.
        """
        num, sizes = config.num_particles, sizes or {}

        @functools.cache
        def measure() -> Callable[[Particles], Mapping[str, Any]]:
            # A partial's arrays are inputs of the compiled function, not constants.
            known = eqx.Partial(self.measure, self.target, self.exact())
            return eqx.filter_jit(known)

        def stages(sampler: AbstractKernel | SVGD, num: int) -> Stages:
            if isinstance(sampler, AbstractKernel):
                sampler = SVGD(sampler, optax.sgd(config.step_size))

            def sample(keys: Keys, start: Starts) -> list[Outcome]:
                found = run(
                    keys, sampler, self.target.log_density, start, progress=True,
                    num_steps=config.num_steps, record_every=record_every,
                )  # fmt: skip
                each = [found[index] for index in range(len(keys))]
                return [outcome(one.particles, one.history) for one in each]

            return side_by_side(lambda key: self.start(key, num), sample)

        def outcome(points: Particles, history: Mapping[str, Any]) -> Outcome:
            return seed_outcome(measure()(points), points, history=history)

        def floor(trial: Trial) -> Outcome:
            return outcome(drawn(self.target, trial.key(2), num), {})

        return [
            *(
                Entry(name, stages(sampler, sizes.get(name, num)), note, together=True)
                for name, (sampler, note) in samplers.items()
            ),
            Entry(FLOOR, floor, label="exact samples", num_seeds=_NUM_FLOORS),
        ]


@eqx.filter_jit
def drawn(target: AbstractTarget, key: Key, num: int) -> Particles:
    """Draw exact samples, by one compiled program."""
    return target.sample(key, num)


def planar_figure(
    config: ToyConfig,
    shown: Shown,
    target: AbstractTarget,
    reach: float,
    views: Callable[[Any], Sequence[np.ndarray]] = lambda points: [points],
    titles: Sequence[str] = ("samples",),
) -> Any:
    """Return the particles of the first seed, over contours of the exact density."""
    first = {e.label: views(o.samples[: config.num_particles]) for e, o in shown}
    ticks = jnp.linspace(-reach, reach, 160)
    grid = jnp.stack(jnp.meshgrid(ticks, ticks), axis=-1)
    logs = jax.jit(jax.vmap(jax.vmap(target.log_density)))(grid)
    return planar_samples(first, titles, np.asarray(jnp.exp(logs)), reach)
