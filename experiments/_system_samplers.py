"""The samplers that are compared on particle systems."""

import dataclasses
import functools
import operator
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import optax
from jaxtyping import Array, Float, Int, PyTree

from equistein.features import PairHistogram
from equistein.kernels import AbstractKernel, Moments, Pullback, RBF
from equistein.metrics import effective_sample_size
from equistein.samplers import (
    AbstractSampler,
    advance,
    annealed_svgd,
    Geometric,
    Langevin,
    MALA,
    SVGD,
    thermal,
    thin,
)
from experiments._systems import System, SystemConfig
from experiments._types import Key, Keys, Particles, Scalar

_SNAPSHOTS = 16  # of the correcting chains, to thin
_FINE_BINS = 100  # of the distances that thinning looks at

Budget = Int[Array, ""]

Sampled = tuple[Particles, dict[str, Scalar]]
"""Particles and further numbers."""


class Snapshot(NamedTuple):
    """Particles on the way, and what they took.

    Attributes:
        points: The particles.
        evaluations: Evaluations of the score, a particle.
        seconds: Without compilation; of runs side by side one's share.
        numbers: Further numbers.
    """

    points: Particles
    evaluations: float
    seconds: float
    numbers: dict[str, Scalar]


Snapshots = Callable[[Keys, Float[Array, "run particle *shape"]], list[list[Snapshot]]]
"""From keys and starts, for each run the particles after more and more evaluations."""


@dataclasses.dataclass(frozen=True)
class SystemSamplers:
    """The samplers, as functions of a number of evaluations that need not be static.

    Attributes:
        config: The settings.
        system: What is sampled.
    """

    config: SystemConfig
    system: System

    def named(self, name: str) -> Callable[[Key, Particles, Budget], Sampled]:
        """Return a sampler by its name, one of `ANNEALED`."""
        two_phases = {"equivariant": self.equivariant, "thinned": self.thinned}
        return two_phases.get(name, functools.partial(self.one_phase, name))

    def equivariant(self, key: Key, start: Particles, num_steps: Budget) -> Sampled:
        """E-SVGD with noise, and Metropolis-adjusted chains that correct its bias."""
        flow_key, chain_key = jr.split(key)
        particles, left = self._flowed_part(flow_key, start, num_steps)
        return self._corrected(chain_key, particles, left)[-1], {}

    def thinned(self, key: Key, start: Particles, num_steps: Budget) -> Sampled:
        """The same, thinned from several snapshots of the chains."""
        flow_key, chain_key, thin_key = jr.split(key, 3)
        particles, left = self._flowed_part(flow_key, start, num_steps)
        snapshots = self._corrected(chain_key, particles, left)
        pool = snapshots.reshape(-1, *start.shape[1:])
        levels = jax.vmap(self.system.target.log_density)(pool)
        chosen = thin(thin_key, self._fine_features(pool), levels, len(start))
        chosen = jr.permutation(jr.fold_in(thin_key, 1), chosen)  # not by energy
        worth = effective_sample_size(levels.reshape(_SNAPSHOTS, -1).T)
        return pool[chosen], {"pool_effective_size": worth}

    def one_phase(
        self, name: str, key: Key, start: Particles, num_steps: Budget
    ) -> Sampled:
        """One of the samplers that anneal over all evaluations."""
        config, annealing = self.config, self._annealing(num_steps)
        shared: dict[str, Any] = self._shared | {"annealing": annealing}
        rate = _tempered(config.noise, annealing, num_steps, 0.05)
        adapted = (config.annealed_fraction * num_steps).astype(int)
        sorted_distances = Pullback(RBF(), self.system.target.features)

        def svgd(kernel: AbstractKernel) -> SVGD:
            return annealed_svgd(kernel, num_steps, config.quiet_step_size, **shared)

        samplers: dict[str, AbstractSampler] = {
            "quiet": svgd(sorted_distances),
            "vanilla": svgd(RBF()),
            "langevin": Langevin(rate, **shared),
            "mala": MALA(config.mala_step_size, num_adapt=adapted, **shared),
        }
        return self._after(key, samplers[name], start, num_steps), {}

    @property
    def kernel(self) -> Moments:
        """The kernel of `equivariant`, on a smooth histogram of distances."""
        config = self.config
        return Moments(
            PairHistogram(
                self.system.target.group.species, reach=config.reach,
                num_centers=config.num_bins, width=config.bin_width,
            )
        )  # fmt: skip

    @property
    def _shared(self) -> dict[str, Any]:
        project = self.system.target.group.project
        return {"score_clip": self.config.score_clip, "project": project}

    def _annealing(self, num_steps: Budget) -> Geometric:
        config = self.config
        return Geometric(
            config.annealed_fraction * num_steps, start=config.start_inverse_temperature
        )

    def _after(
        self, key: Key, sampler: AbstractSampler, start: Particles, num_steps: Budget
    ) -> Particles:
        log_density = self.system.target.log_density
        state = sampler.init(start, log_density)
        return advance(key, sampler, log_density, state, num_steps).particles

    def descended(self, key: Key, start: Particles, num_steps: Budget) -> Particles:
        """MALA, which anneals over all evaluations."""
        return self.one_phase("mala", key, start, num_steps)[0]

    def flowed(self, key: Key, start: Particles, num_steps: Budget) -> Particles:
        """E-SVGD with noise, which anneals over all evaluations."""
        config, annealing = self.config, self._annealing(num_steps)
        flow = SVGD(
            self.kernel,
            optax.sgd(_tempered(config.stein_step, annealing, num_steps, 1.0)),
            annealing=annealing,
            langevin=_tempered(config.noise, annealing, num_steps, 1.0),
            score_clip=config.score_clip,
        )
        return self._after(key, flow, start, num_steps)

    def _flowed_part(
        self, key: Key, start: Particles, num_steps: Budget
    ) -> tuple[Particles, Budget]:
        """Return E-SVGD's particles, and what is left of the evaluations."""
        flowing = (num_steps * (1 - self.config.corrected_fraction)).astype(int)
        return self.flowed(key, start, flowing), num_steps - flowing

    def _corrected(
        self, key: Key, particles: Particles, num_steps: Budget
    ) -> Float[Array, "snapshot particle *shape"]:
        """Return the states of chains that correct particles, in the second half."""
        log_density, half = self.system.target.log_density, num_steps // 2
        chains = MALA(self.config.mala_step_size, num_adapt=half, **self._shared)
        state = advance(
            key, chains, log_density, chains.init(particles, log_density), half
        )

        def snapshot(state, index):
            after = half + (num_steps - half) * (index + 1) // _SNAPSHOTS
            state = advance(key, chains, log_density, state, after)
            return state, state.particles

        return jax.lax.scan(snapshot, state, jnp.arange(_SNAPSHOTS))[1]

    def _fine_features(self, pool: Particles) -> Float[Array, "n feature"]:
        """Return what thinning looks at: the distances, in fine bins."""
        low, high = self.system.limits
        num = round(_FINE_BINS * high / (high - low)) + 1
        species = self.system.target.group.species
        return jax.vmap(PairHistogram(species, reach=high, num_centers=num))(pool)


def _tempered(
    step_size: float, annealing: Geometric, num_steps: Budget, last: float
) -> Callable[[Any], Any]:
    """Return the schedule of a squared length, which follows the temperature."""
    return thermal(step_size, annealing, num_steps, power=1.0, last=last)


def budgets_of(config: SystemConfig, last: int) -> list[int]:
    """Return the numbers of evaluations to look at, up to the last."""
    return sorted({budget for budget in config.budgets if budget < last} | {last})


def over_budgets(config: SystemConfig, system: System, name: str) -> Snapshots:
    """Return what runs one of `ANNEALED` again for each number of evaluations."""
    samplers, over_pairs = SystemSamplers(config, system), ANNEALED[name][0]
    last = min(config.pair_budget, config.num_steps) if over_pairs else config.num_steps
    # One compilation serves all numbers of steps.
    move = side_by_side(samplers.named(name))

    def curves(
        keys: Keys, starts: Float[Array, "run particle *shape"]
    ) -> list[list[Snapshot]]:
        jax.block_until_ready(move(keys, starts, jnp.asarray(1)))  # compile
        looks = []
        for budget in budgets_of(config, last):
            began = time.perf_counter()
            moved = jax.block_until_ready(move(keys, starts, jnp.asarray(budget)))
            seconds = (time.perf_counter() - began) / len(keys)
            looks.append(
                [
                    Snapshot(points, budget, seconds, numbers)
                    for points, numbers in each_run(moved, len(keys))
                ]
            )
        return list(map(list, zip(*looks, strict=True)))

    return curves


def side_by_side(function: Callable) -> Callable:
    """Return a compiled function of keys, states of as many runs, and a budget."""
    of_runs = eqx.filter_vmap(function, in_axes=(0, eqx.if_array(0), None))
    return eqx.filter_jit(of_runs)


def each_run(tree: PyTree, num: int) -> list[PyTree]:
    """Return the part of each run, in a tree whose arrays have an axis of runs."""
    return [jax.tree.map(operator.itemgetter(i), tree) for i in range(num)]


ANNEALED = {
    "equivariant": (
        False,
        "E-SVGD with the `Moments` kernel on a smooth histogram of distances and "
        "Langevin noise, annealed; the last quarter of the evaluations is MALA, which "
        "takes the step's bias away. Its particles end as good as independent ones.",
    ),
    "thinned": (
        False,
        "The same, and then the particles are chosen from sixteen snapshots of the "
        "last chains, so that they represent them: better than independent samples in "
        "what is measured here, and no longer independent.",
    ),
    "quiet": (
        True,
        "E-SVGD without noise: the kernel pulled back along sorted distances, "
        "annealed. Under-dispersed, and biased where distances tie.",
    ),
    "vanilla": (
        True,
        "SVGD with the median rule, annealed: under-dispersed.",
    ),
    "langevin": (
        False,
        "The noise of `equivariant` alone, with smaller steps at the end.",
    ),
    "mala": (
        False,
        "Annealed Metropolis-adjusted Langevin chains with an adapted step size: the "
        "baseline to beat.",
    ),
}
"""For each name whether the sampler sums over all pairs, and a note."""
