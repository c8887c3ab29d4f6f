"""The samplers that are compared on particle systems, over budgets of evaluations."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
from jaxtyping import Array, Int, PyTree

from equistein.features import PairHistogram
from equistein.kernels import Moments, Pullback, RBF
from equistein.samplers import (
    AbstractMarkovChains,
    AbstractSampler,
    advance,
    annealed_svgd,
    AnnealedSMC,
    from_blackjax,
    Geometric,
    MALA,
    ParallelTempering,
    SVGD,
    thermal,
)
from experiments._engine import Key, Keys, Particles, Starts
from experiments._particle_config import ACCEPTANCE, kind_of, SystemConfig
from experiments._systems import System

_ANNEALED = 0.9  # of the evaluations
_CORRECTED = 0.25  # of those of `equivariant`, by MALA at the end
_NUM_BINS = 8  # of its smooth histogram of distances
_DESCENT = 100  # evaluations from which chains continue
_TRAJECTORY = 10  # steps of HMC and of microcanonical chains
_ADAPTING = 100  # steps of tempering
_DOUBLINGS = 6  # of a tree of NUTS, at most
_POLISHING = 0.05  # of the evaluations
_RUNS, _MOVES, _ESS = 4, 4, 0.9  # of sequential Monte Carlo

Budget = Int[Array, ""]


Snapshot = tuple[Particles, float]
"""Particles on the way, and the evaluations of the score that each of them took."""
Snapshots = Callable[[Keys, Starts], list[list[Snapshot]]]
"""From keys and starts, for each run the particles after more and more evaluations."""


@dataclasses.dataclass(frozen=True)
class Annealed:
    """Samplers as functions of a number of evaluations that need not be static.

    Attributes:
        config: The settings.
        system: What is sampled.
    """

    config: SystemConfig
    system: System

    def named(self, name: str) -> Callable[[Key, Particles, Budget], Particles]:
        """Return one of those that anneal over all evaluations, by its name."""
        if name == "equivariant":
            return self.equivariant
        return functools.partial(self.one_phase, name)

    def equivariant(self, key: Key, start: Particles, num_steps: Budget) -> Particles:
        """E-SVGD with noise, and MALA for the last part of the evaluations."""
        flow_key, chain_key = jr.split(key)
        flowing = (num_steps * (1 - _CORRECTED)).astype(int)
        particles, left = self.flowed(flow_key, start, flowing), num_steps - flowing
        chains = MALA(self.config.mala_step_size, num_adapt=left // 2, **self._shared)
        return self.after(chain_key, chains, particles, left)

    def one_phase(
        self, name: str, key: Key, start: Particles, num_steps: Budget
    ) -> Particles:
        """One of the samplers that only anneal."""
        config, annealing = self.config, self._annealing(num_steps)
        shared: dict[str, Any] = self._shared | {"annealing": annealing}
        adapted = (_ANNEALED * num_steps).astype(int)
        sorted_distances = Pullback(RBF(), self.system.target.features)
        svgd = lambda kernel: annealed_svgd(
            kernel, num_steps, config.quiet_step_size, **shared
        )
        samplers: dict[str, AbstractSampler] = {
            "quiet": svgd(sorted_distances),
            "vanilla": svgd(RBF()),
            "mala": MALA(config.mala_step_size, num_adapt=adapted, **shared),
        }
        return self.after(key, samplers[name], start, num_steps)

    def flowed(self, key: Key, start: Particles, num_steps: Budget) -> Particles:
        """E-SVGD with noise, which anneals over all evaluations."""
        config, annealing = self.config, self._annealing(num_steps)
        # Squared lengths, which follow the temperature.
        tempered = lambda step: thermal(step, annealing, num_steps, power=1.0, last=1.0)
        flow = SVGD(
            self.kernel,
            optax.sgd(tempered(config.stein_step)),
            annealing=annealing,
            langevin=tempered(config.noise),
            score_clip=config.score_clip,
        )
        return self.after(key, flow, start, num_steps)

    def polished(self, key: Key, particles: Particles, num_steps: Budget) -> Particles:
        """Return what E-SVGD without noise makes of particles that are samples."""
        config = self.config
        flow = SVGD(
            self.kernel, optax.sgd(config.stein_step), score_clip=config.score_clip
        )
        return self.after(key, flow, particles, num_steps)

    def after(
        self, key: Key, sampler: AbstractSampler, start: Particles, num_steps: Budget
    ) -> Particles:
        """Return where a sampler moves particles."""
        log_density = self.system.target.log_density
        state = sampler.init(start, log_density)
        return advance(key, sampler, log_density, state, num_steps).particles

    @property
    def kernel(self) -> Moments:
        """The kernel of E-SVGD, on a smooth histogram of distances."""
        config, species = self.config, self.system.target.group.species
        return Moments(
            PairHistogram(
                species, reach=config.reach, num_centers=_NUM_BINS,
                width=config.bin_width,
            )
        )  # fmt: skip

    @property
    def _shared(self) -> dict[str, Any]:
        project = self.system.target.group.project
        return {"score_clip": self.config.score_clip, "project": project}

    def _annealing(self, num_steps: Budget) -> Geometric:
        start = self.config.start_inverse_temperature
        return Geometric(_ANNEALED * num_steps, start=start)


def over_budgets(config: SystemConfig, system: System, name: str) -> Snapshots:
    """Return what runs one of `ANNEALED` again for each number of evaluations."""
    last = config.num_steps
    if name in ("quiet", "vanilla"):
        last = min(config.pair_budget, last)
    # One compilation serves all numbers of steps.
    move = _of_runs(Annealed(config, system).named(name))

    def curves(keys: Keys, starts: Starts) -> list[list[Snapshot]]:
        looks = [
            [(points, budget) for points in move(keys, starts, jnp.asarray(budget))]
            for budget in config.looks(last)
        ]
        return list(map(list, zip(*looks, strict=True)))

    return curves


def through_budgets(config: SystemConfig, system: System, name: str) -> Snapshots:
    """Return what runs one of `CHAINS`, and looks at it when each budget is spent.

    The particles are those of as many chains; of tempering, whose ladders are fewer,
    they are the cold ends at several moments since the budget before. Runs go side by
    side, and each stops by itself when it has spent a budget. `svgd-X` begins where
    E-SVGD is, and the last evaluations of each budget of `X-svgd` are those of E-SVGD
    without noise, on a copy of the particles.
    """
    num, kind = config.num_particles, kind_of(name)
    annealed, sampler = Annealed(config, system), _sampler(config, system, kind)
    density, polishes = system.target.log_density, name.endswith("-svgd")
    num_chains = min(config.num_ladders, num) if kind == "tempering" else num
    num_looks, per_particle = -(-num // num_chains), num_chains / num
    descent = 0 if kind == "smc" else min(_DESCENT, config.num_steps // 4)
    spent_before = descent * per_particle
    budgets = [b for b in config.looks(config.num_steps) if b > spent_before]
    descended = annealed.named("mala")
    if name.startswith("svgd-"):
        descended = annealed.flowed
    begun = _of_runs(lambda *start: sampler.init(descended(*start), density))
    until = _of_runs(functools.partial(_until, sampler, density))
    polished = _of_runs(annealed.polished)

    def curves(keys: Keys, starts: Starts) -> list[list[Snapshot]]:
        down_keys, keys = jnp.moveaxis(jax.vmap(jr.split)(keys), 1, 0)
        starts = starts[:, :num_chains]
        states = begun(down_keys, starts, jnp.asarray(descent))
        looks, before = [], spent_before
        for budget in budgets:
            polishing = round(_POLISHING * budget) if polishes else 0
            pool = []
            for moment in np.linspace(before, budget - polishing, num_looks + 1)[1:]:
                limit = jnp.asarray(round(moment / per_particle) - descent)
                states = until(keys, states, limit)
                pool.append(states.particles)
            points = jnp.concatenate(pool, axis=1)[:, :num]
            if polishing:
                points = polished(keys, points, jnp.asarray(polishing))
            spent = (descent + states.evaluations) * per_particle + polishing
            looks.append([(points[i], float(spent[i])) for i in range(len(keys))])
            before = budget
        return list(map(list, zip(*looks, strict=True)))

    return curves


def _of_runs(function: Callable) -> Callable:
    """Return a compiled function of keys, states of as many runs, and a budget."""
    of_runs = eqx.filter_vmap(function, in_axes=(0, eqx.if_array(0), None))
    return eqx.filter_jit(of_runs)


def _until(
    sampler: AbstractSampler,
    log_density: Callable,
    key: Key,
    state: PyTree,
    evaluations: Budget,
) -> PyTree:
    """Take steps until a chain took that many evaluations."""
    return jax.lax.while_loop(
        lambda state: state.evaluations < evaluations,
        lambda state: advance(key, sampler, log_density, state, state.step + 1),
        state,
    )


def _sampler(config: SystemConfig, system: System, kind: str) -> Any:
    """Return what moves chains; tempering and SMC adapt the steps of what they use."""
    target = system.target
    if kind in ACCEPTANCE:
        return _blackjax(config, system, kind, config.num_adapt)
    inner: AbstractMarkovChains = MALA(
        config.mala_step_size, score_clip=config.score_clip,
        project=target.group.project,
    )  # fmt: skip
    if config.inner == "hmc":
        inner = _blackjax(config, system, "hmc", 0)
    if kind == "tempering":
        return ParallelTempering(
            inner, target.inverse_temperatures, num_adapt=_ADAPTING
        )
    runs = _RUNS if config.num_particles % _RUNS == 0 else 1
    return AnnealedSMC(inner, num_runs=runs, num_moves=_MOVES, ess_fraction=_ESS)


def _blackjax(
    config: SystemConfig, system: System, kind: str, num_adapt: int
) -> AbstractMarkovChains:
    import blackjax

    algorithm, options = {
        "hmc": (blackjax.hmc, {"num_integration_steps": _TRAJECTORY}),
        "nuts": (blackjax.nuts, {"max_num_doublings": _DOUBLINGS}),
        "mclmc": (
            blackjax.adjusted_mclmc,
            {"integration_steps_params": (_TRAJECTORY,)},
        ),
    }[kind]
    return from_blackjax(
        algorithm, num_adapt=num_adapt, step_size=config.hamiltonian_step_size,
        acceptance=ACCEPTANCE[kind], project=system.target.group.project, **options,
    )  # fmt: skip
