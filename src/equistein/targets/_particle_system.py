"""The interface of targets that are made of like particles, and their minima."""

import abc
import functools
import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, Int

from equistein._arrays import as_keys, on_device
from equistein._check_arguments import check_arguments
from equistein._numbers import check_integers
from equistein._products import matmul
from equistein._types import AnyKey, Key, LogDensity, Particles
from equistein.data import cached_array
from equistein.features import AbstractFeatures, SortedDistances
from equistein.groups import PointCloud
from equistein.metrics import AbstractParticleDensity
from equistein.samplers import advance, MALA, ParallelTempering, visit
from equistein.targets._base import AbstractTarget

_LADDERS = 256  # independent chains, at most
_STEP_SIZE = 1e-3  # of the first Langevin move
_STEEPEST = 1_000.0  # the longest drift, times the reach
_REFERENCE = 2  # the version of what makes reference samples
_FIRST_SEED = 1_000  # of reference samples
_DESCENT = 5e-3  # the step of a relaxation, below two over the largest curvature
_LONGEST = 0.05  # that a point moves in it


class Minima(eqx.Module):
    """The distinct local minima of an energy, lowest first, and their features."""

    points: Particles
    energies: Float[Array, " minimum"]
    features: Float[Array, "minimum feature"]


class AbstractParticleSystem(AbstractTarget, AbstractParticleDensity):
    """Like particles on the subspace whose center of mass is the origin."""

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
    def inverse_temperatures(self) -> Float[Array, " temperature"]:
        """A ladder for parallel tempering, down to the hottest."""
        ratio = 1 - 0.9 / self.degrees_of_freedom**0.5
        rungs = 1 + math.ceil(math.log(self.hottest) / math.log(ratio))
        return jnp.geomspace(1.0, self.hottest, rungs)

    def sample(
        self, key: AnyKey, num: int, *, num_steps: int | None = None
    ) -> Particles:
        """Draw reference samples by parallel tempering.

        At most 256 independent ladders of temperatures forget their start over
        `num_steps` steps (by default ten times `relaxation`, at least 2 000), then give
        a sample every `relaxation` steps.
        """
        key = as_keys(key)
        check_integers("`sample`", num=num)
        if num_steps is None:
            num_steps = max(2_000, 10 * self.relaxation)
        start_key, run_key, order_key = jr.split(key, 3)
        # Chains that begin where particles overlap would not leave it.
        start = self.start(start_key, min(num, _LADDERS))
        start = _relax(self.log_density, start, num_steps=100)
        rounds = -(-num // len(start))
        chains = MALA(
            _STEP_SIZE, score_clip=_STEEPEST / self.reach, project=self.group.project
        )
        sampler = ParallelTempering(
            chains, self.inverse_temperatures, num_adapt=num_steps
        )
        density, every = self.log_density, self.relaxation
        state = eqx.filter_jit(sampler.init)(start, density)
        until = state.step + (num_steps + every)
        state = advance(run_key, sampler, density, state, until)
        points = visit(run_key, sampler, density, state, every, rounds)
        return jr.permutation(order_key, points)[:num]

    def reference(self, num: int, part: int) -> Particles:
        """Return samples by `sample` with seed 1000 + `part`, from the cache if there.

        Part 0 is to compare with, part 1 for floors.
        """
        target = {"version": _REFERENCE, "target": repr(self), "num": num, "part": part}
        make = lambda: np.asarray(self.sample(jr.key(_FIRST_SEED + part), num))
        name, shape = f"{self.name}-reference", (num, *self.shape)
        return on_device(cached_array(name, target, shape, make))

    def start(self, key: AnyKey, num: int) -> Particles:
        """Draw points from a box, with the center of mass at the origin."""
        return centered_starts(as_keys(key), num, self.shape, self.reach)

    def minima(self, key: AnyKey, num_starts: int = 512) -> Minima:
        """Find the distinct minima from many starts; 512 find all five of DW-4."""
        starts = centered_starts(as_keys(key), num_starts, self.shape, self.reach)
        return find_minima(self.log_density, starts, self.features)

    @eqx.filter_jit
    def states(self, points: Particles, minima: Minima) -> Int[Array, " n"]:
        """Return the index of the minimum that each point relaxes to."""
        ends = jax.vmap(self.features)(_relax(self.log_density, points))
        gaps = jnp.abs(ends[:, None] - minima.features[None].astype(ends.dtype))
        return jnp.argmin(jnp.max(gaps, axis=-1), axis=1)

    @property
    def state_energies(self) -> tuple[float, ...]:
        if not self.has_few_states:
            return ()
        return tuple(np.asarray(_known_minima(self).energies).tolist())

    def known_states(self, points: Particles) -> Int[Array, " n"]:
        return self.states(points, _known_minima(self))


def centered_starts(
    key: Key, num: int, shape: tuple[int, ...], reach: float
) -> Particles:
    """Draw points uniformly from a box and move their center of mass to the origin."""
    box = jr.uniform(key, (num, *shape), minval=-reach, maxval=reach)
    return box - jnp.mean(box, axis=1, keepdims=True)


@functools.lru_cache(4)
def _known_minima(target: AbstractParticleSystem) -> Minima:
    return target.minima(jr.key(0))


@check_arguments
def find_minima(
    log_density: LogDensity, starts: Particles, features: AbstractFeatures
) -> Minima:
    """Relax from many starts and return the distinct ends, polished by Newton steps.

    Saddles are left out. `features` are invariant, and separate minima.
    """
    ends = _polished_ends(log_density, starts, features)
    points, energies, lowest, steepness, described = map(np.asarray, ends)
    good = np.isfinite(energies) & (steepness < 1e-2) & (lowest > -1e-2)
    kept: list[int] = []
    for index in np.argsort(energies):
        if good[index] and all(
            np.max(np.abs(described[index] - described[other])) > 1e-2 for other in kept
        ):
            kept.append(int(index))
    return Minima(*map(on_device, (points[kept], energies[kept], described[kept])))


@eqx.filter_jit
def _polished_ends(log_density: LogDensity, starts: Particles, features: Any):
    def newton(x):
        shape = x.shape

        def energy(flat):
            return -log_density(flat.reshape(shape))

        def improve(_, flat):
            values, vectors = jnp.linalg.eigh(jax.hessian(energy)(flat))
            along = matmul(vectors.T, jax.grad(energy)(flat))
            # Rigid motions have no curvature.
            move = jnp.where(values > 1e-2, along / jnp.maximum(values, 1e-2), 0)
            return flat - matmul(vectors, move)

        flat = jax.lax.fori_loop(0, 10, improve, x.ravel())
        lowest = jnp.linalg.eigvalsh(jax.hessian(energy)(flat))[0]
        steepness = jnp.max(jnp.abs(jax.grad(energy)(flat)))
        x = flat.reshape(shape)
        return x, energy(flat), lowest, steepness, features(x)

    return jax.vmap(newton)(_relax(log_density, starts))


@eqx.filter_jit
def _relax(
    log_density: LogDensity, points: Particles, num_steps: int = 3_000
) -> Particles:
    """Move each point to the minimum of its basin, by plain gradient descent."""

    def descend(_, x):
        move = _DESCENT * jax.grad(log_density)(x)
        length = jnp.sqrt(jnp.sum(move**2))
        return x + move * (_LONGEST / jnp.maximum(length, _LONGEST))

    return jax.vmap(lambda x: jax.lax.fori_loop(0, num_steps, descend, x))(points)
