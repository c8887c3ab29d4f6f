"""The interface of targets that are made of like particles."""

import abc
import functools
import math

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, Int

from equistein._arrays import as_keys, check_num
from equistein._types import AnyKey, Key, LogDensity, Particles, Point
from equistein.data import cached_array
from equistein.features import pair_differences, SortedDistances
from equistein.groups import PointCloud
from equistein.metrics import AbstractParticleDensity
from equistein.samplers import advance, MALA, ParallelTempering
from equistein.targets._base import AbstractTarget
from equistein.targets._minima import find_minima, Minima, relax

_LADDERS = 256  # independent chains, at most
_STEP_SIZE = 1e-3  # of the first Langevin move
_STEEPEST = 1_000.0  # the longest drift, times the reach
_REFERENCE = 2  # the version of what makes reference samples
_FIRST_SEED = 1_000  # of reference samples


class AbstractParticleSystem(AbstractTarget, AbstractParticleDensity):
    """Like particles on the subspace whose center of mass is the origin."""

    num_particles: eqx.AbstractVar[int]
    dim: eqx.AbstractVar[int]

    @property
    @abc.abstractmethod
    def reach(self) -> float:
        """Half the side of the box of starts."""

    @property
    @abc.abstractmethod
    def hottest(self) -> float:
        """The inverse temperature at which no barrier is left, of 1 for the target."""

    @property
    @abc.abstractmethod
    def relaxation(self) -> int:
        """The steps of parallel tempering in which a chain forgets its energy."""

    @property
    def has_few_states(self) -> bool:
        """Whether it has few minima, whose weights can be compared; by default no."""
        return False

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.num_particles, self.dim)

    @property
    def group(self) -> PointCloud:
        return PointCloud((0,) * self.num_particles, self.dim)

    @property
    def features(self) -> SortedDistances:
        """The features that separate configurations up to the group."""
        return SortedDistances((0,) * self.num_particles)

    @property
    def degrees_of_freedom(self) -> int:
        """The dimension of the subspace."""
        return (self.num_particles - 1) * self.dim

    @property
    def inverse_temperatures(self) -> Float[Array, " temperature"]:
        """A ladder for parallel tempering, down to the hottest."""
        ratio = 1 - 0.9 / self.degrees_of_freedom**0.5
        rungs = 1 + math.ceil(math.log(self.hottest) / math.log(ratio))
        return jnp.geomspace(1.0, self.hottest, rungs)

    def distances(self, point: Point) -> Float[Array, " pair"]:
        """Return the distance of each pair, smooth where two particles coincide."""
        squared = jnp.sum(pair_differences(point) ** 2, axis=-1)
        return jnp.sqrt(squared + float(jnp.finfo(point.dtype).tiny) ** 0.5)

    def sample(
        self, key: AnyKey, num: int, *, num_steps: int | None = None
    ) -> Particles:
        """Draw reference samples by parallel tempering.

        At most 256 independent ladders of temperatures forget their start over
        `num_steps` steps, then give a sample every `relaxation` steps.

        The default of `num_steps` is ten times `relaxation`, at least 2 000.
        """
        key = as_keys(key)
        check_num(num)
        if num_steps is None:
            num_steps = max(2_000, 10 * self.relaxation)
        start_key, run_key, order_key = jr.split(key, 3)
        # Chains that begin where particles overlap would not leave it.
        start = relax(
            self.log_density, self.start(start_key, min(num, _LADDERS)), num_steps=100
        )
        rounds = -(-num // len(start))
        chains = MALA(
            _STEP_SIZE, score_clip=_STEEPEST / self.reach, project=self.group.project
        )
        sampler = ParallelTempering(
            chains, self.inverse_temperatures, num_adapt=num_steps
        )
        points = _visited(
            run_key, sampler, self.log_density, start, num_steps,
            self.relaxation, rounds,
        )  # fmt: skip
        return jr.permutation(order_key, points)[:num]

    def reference(self, num: int, part: int) -> Particles:
        """Return samples by `sample` with seed 1000 + `part`, from the cache if there.

        Part 0 is to compare with, part 1 for floors.
        """
        target = {"version": _REFERENCE, "target": repr(self), "num": num, "part": part}
        make = lambda: np.asarray(self.sample(jr.key(_FIRST_SEED + part), num))
        name, shape = f"{self.name}-reference", (num, *self.shape)
        return jnp.asarray(cached_array(name, target, shape, make))

    def start(self, key: AnyKey, num: int) -> Particles:
        """Draw points from a box, with the center of mass at the origin."""
        return centered_starts(as_keys(key), num, self.shape, self.reach)

    def minima(self, key: AnyKey, num_starts: int = 512) -> Minima:
        """Find the distinct minima from many starts; 512 find all five of DW-4."""
        key = as_keys(key)
        starts = self.start(key, num_starts)
        return find_minima(self.log_density, starts, self.features)

    def states(self, points: Particles, minima: Minima) -> Int[Array, " n"]:
        """Return the index of the minimum that each point relaxes to."""
        ends = jax.vmap(self.features)(relax(self.log_density, points))
        gaps = jnp.max(jnp.abs(ends[:, None] - minima.features[None]), axis=-1)
        return jnp.argmin(gaps, axis=1)

    @property
    def state_energies(self) -> tuple[float, ...]:
        if not self.has_few_states:
            return ()
        return tuple(float(energy) for energy in _known_minima(self).energies)

    def known_states(self, points: Particles) -> Int[Array, " n"]:
        minima = jax.tree.map(lambda x: x.astype(points.dtype), _known_minima(self))
        return self.states(points, minima)


def centered_starts(
    key: Key, num: int, shape: tuple[int, ...], reach: float
) -> Particles:
    """Draw points uniformly from a box and move their center of mass to the origin."""
    box = jr.uniform(key, (num, *shape), minval=-reach, maxval=reach)
    return box - jnp.mean(box, axis=1, keepdims=True)


@functools.lru_cache(4)
def _known_minima(target: AbstractParticleSystem) -> Minima:
    return target.minima(jr.key(0))


@eqx.filter_jit
def _visited(
    key: Key,
    sampler: ParallelTempering,
    log_density: LogDensity,
    start: Particles,
    num_steps: int,
    every: int,
    rounds: int,
) -> Float[Array, "sample *shape"]:
    state = advance(
        key, sampler, log_density, sampler.init(start, log_density), num_steps
    )

    def visit(state, number):
        until = num_steps + every * (number + 1)
        state = advance(key, sampler, log_density, state, until)
        return state, state.particles

    _, points = jax.lax.scan(visit, state, jnp.arange(rounds))
    return points.reshape(-1, *start.shape[1:])
