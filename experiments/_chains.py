"""Samplers that continue from one budget to the next."""

import dataclasses
import functools
import time
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
from jaxtyping import Array, Float, PyTree

from equistein.samplers import (
    AbstractMarkovChains,
    AbstractSampler,
    advance,
    AnnealedSMC,
    from_blackjax,
    MALA,
    ParallelTempering,
    SVGD,
)
from experiments._system_samplers import (
    Budget,
    budgets_of,
    each_run,
    side_by_side,
    Snapshot,
    Snapshots,
    SystemSamplers,
)
from experiments._systems import System, SystemConfig
from experiments._types import Key, Keys, LogDensity, Particles

_ACCEPTANCE = {"hmc": 0.65, "nuts": 0.8, "mclmc": 0.9}  # as their authors say
_ADAPTING = 100  # steps of tempering
_DOUBLINGS = 6  # of a tree of NUTS, at most
_POLISHING = 0.05  # of the evaluations
_RUNS = 4  # of sequential Monte Carlo


@dataclasses.dataclass(frozen=True)
class Chains:
    """What continues through all budgets, and what comes before and after.

    Attributes:
        kind: What it is.
        note: A sentence for the report.
        start: What brings the particles down from the start; None for nothing.
        polished: Whether the last evaluations of each budget are those of E-SVGD
            without noise, on a copy of the particles.
    """

    kind: Literal["hmc", "nuts", "mclmc", "tempering", "smc"]
    note: str
    _: dataclasses.KW_ONLY
    start: Literal["mala", "equivariant"] | None = "mala"
    polished: bool = False

    def needs_blackjax(self, config: SystemConfig) -> bool:
        """Return whether BlackJAX moves the chains."""
        return self.kind in _ACCEPTANCE or config.inner == "hmc"


def through_budgets(config: SystemConfig, system: System, name: str) -> Snapshots:
    """Return what runs one of `CHAINS`, and looks at it when each budget is spent.

    The particles are those of as many chains; of tempering, whose ladders are fewer,
    they are the cold ends at several moments since the budget before. Runs go side by
    side, and each stops by itself when it has spent a budget.
    """
    chains, num = CHAINS[name], config.num_particles
    samplers, sampler = SystemSamplers(config, system), _sampler(config, system, name)
    is_tempering = chains.kind == "tempering"
    num_chains = min(config.num_ladders, num) if is_tempering else num
    num_looks, per_particle = -(-num // num_chains), num_chains / num
    descent = min(config.descent, config.num_steps // 4) if chains.start else 0
    spent_before = descent * per_particle
    budgets = [b for b in budgets_of(config, config.num_steps) if b > spent_before]
    flows = chains.start == "equivariant"
    descended = samplers.flowed if flows else samplers.descended
    density = system.target.log_density
    begun = side_by_side(lambda *start: sampler.init(descended(*start), density))
    until = side_by_side(functools.partial(_until, sampler, density))
    polished = side_by_side(functools.partial(_polished, samplers))
    summary = eqx.filter_vmap(sampler.summary)

    def curves(
        keys: Keys, starts: Float[Array, "run particle *shape"]
    ) -> list[list[Snapshot]]:
        down_keys, keys = jnp.moveaxis(jax.vmap(jr.split)(keys), 1, 0)
        starts, runs = starts[:, :num_chains], len(keys)
        # All is compiled before the clock starts.
        nothing = jnp.asarray(0)
        states = until(keys, begun(down_keys, starts, nothing), nothing)
        if chains.polished:
            polished(keys, states.particles, nothing)
        began = time.perf_counter()
        states = begun(down_keys, starts, jnp.asarray(descent))
        snapshots, before = [], spent_before
        for budget in budgets:
            polishing = round(_POLISHING * budget) if chains.polished else 0
            looks = np.linspace(before, budget - polishing, num_looks + 1)[1:]
            pool = []
            for moment in looks:
                limit = jnp.asarray(round(moment / per_particle) - descent)
                states = until(keys, states, limit)
                pool.append(states.particles)
            points = jnp.concatenate(pool, axis=1)[:, :num]
            if polishing:
                points = polished(keys, points, jnp.asarray(polishing))
            jax.block_until_ready(points)
            spent = (descent + states.evaluations) * per_particle + polishing
            seconds = (time.perf_counter() - began) / runs
            found = points, spent, _numbers(summary(states))
            snapshots.append(
                [
                    Snapshot(points, float(spent), seconds, numbers)
                    for points, spent, numbers in each_run(found, runs)
                ]
            )
            before = budget
        return list(map(list, zip(*snapshots, strict=True)))

    return curves


def _until(
    sampler: AbstractSampler,
    log_density: LogDensity,
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


def _polished(
    samplers: SystemSamplers, key: Key, particles: Particles, num_steps: Budget
) -> Particles:
    """Return what E-SVGD without noise makes of particles that are samples."""
    config = samplers.config
    flow = SVGD(
        samplers.kernel, optax.sgd(config.stein_step), score_clip=config.score_clip
    )
    density = samplers.system.target.log_density
    state = flow.init(particles, density)
    return advance(key, flow, density, state, num_steps).particles


def _sampler(config: SystemConfig, system: System, name: str) -> Any:
    """Return one of `CHAINS`."""
    kind, target = CHAINS[name].kind, system.target
    inner = _inner(config, system)
    if kind == "tempering":
        return ParallelTempering(
            inner, target.inverse_temperatures, num_adapt=_ADAPTING
        )
    if kind == "smc":
        runs = _RUNS if config.num_particles % _RUNS == 0 else 1
        return AnnealedSMC(
            inner,
            num_runs=runs,
            num_moves=config.smc_moves,
            ess_fraction=config.ess_fraction,
        )
    return _blackjax(config, system, kind, num_warmup=config.num_warmup)


def _inner(config: SystemConfig, system: System) -> AbstractMarkovChains:
    """Return what moves the chains of tempering, which adapts their step sizes."""
    if config.inner == "hmc":
        return _blackjax(config, system, "hmc", num_warmup=0)
    return MALA(
        config.mala_step_size, score_clip=config.score_clip,
        project=system.target.group.project,
    )  # fmt: skip


def _blackjax(
    config: SystemConfig, system: System, kind: str, num_warmup: int
) -> AbstractMarkovChains:
    import blackjax

    algorithm, options = {
        "hmc": (blackjax.hmc, {"num_integration_steps": config.trajectory}),
        "nuts": (blackjax.nuts, {"max_num_doublings": _DOUBLINGS}),
        "mclmc": (
            blackjax.adjusted_mclmc,
            {"integration_steps_params": (config.trajectory,)},
        ),
    }[kind]
    return from_blackjax(
        algorithm, num_warmup=num_warmup, step_size=config.hamiltonian_step_size,
        acceptance=_ACCEPTANCE[kind], project=system.target.group.project, **options,
    )  # fmt: skip


def _numbers(summaries: dict[str, Any]) -> dict[str, Any]:
    """Return what summaries say in single numbers, one a run."""
    found = {name: x for name, x in summaries.items() if np.ndim(x) == 1}
    if "inverse_temperatures" in summaries and "log_z_of_runs" in summaries:
        coldest = jnp.min(summaries["inverse_temperatures"], axis=1)
        found["inverse_temperature"] = coldest
    return found


CHAINS = {
    "hmc": Chains(
        "hmc",
        "BlackJAX's HMC with trajectories of a set number of steps; its warm-up "
        "finds the step size and masses. It starts where annealed MALA is after a few "
        "evaluations, which count, as do those of the warm-up.",
    ),
    "nuts": Chains("nuts", "BlackJAX's NUTS, likewise."),
    "mclmc": Chains(
        "mclmc",
        "BlackJAX's Metropolis-adjusted microcanonical chains, likewise.",
    ),
    "svgd-hmc": Chains("hmc", "HMC from where E-SVGD is.", start="equivariant"),
    "svgd-nuts": Chains("nuts", "NUTS from where E-SVGD is.", start="equivariant"),
    "svgd-mclmc": Chains(
        "mclmc", "Microcanonical chains from where E-SVGD is.", start="equivariant"
    ),
    "hmc-svgd": Chains(
        "hmc",
        "HMC, and the last twentieth of the evaluations are E-SVGD's without noise, "
        "which makes of samples particles that represent the density together.",
        polished=True,
    ),
    "tempering": Chains(
        "tempering",
        "Parallel tempering of a tenth as many ladders, each looked at ten times since "
        "the budget before; the evaluations of all temperatures count.",
    ),
    "svgd-tempering": Chains(
        "tempering", "Tempering from where E-SVGD is.", start="equivariant"
    ),
    "smc": Chains(
        "smc",
        "Annealed sequential Monte Carlo from a normal density as wide as the start: "
        "until it arrives, its particles are those of a hotter density.",
        start=None,
    ),
}
"""The samplers that continue, by their names."""
