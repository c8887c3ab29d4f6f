"""The cluster of 38 particles: heat capacity, and the weights of its two funnels."""

import functools
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float

from equistein._types import Key, LogDensity, Particles, Scalar
from equistein.experiments.engine._experiment import Entry, Experiment, Trial
from equistein.experiments.systems._convergence import (
    Comparison,
    fcc_weight,
    heat_capacity,
    peak,
)
from equistein.experiments.systems._funnels import (
    cluster,
    FCC_ORDER,
    minima,
    quenched,
)
from equistein.experiments.systems._lj38_config import check, ClusterConfig
from equistein.experiments.systems._lj38_figures import FIGURES, LABELS
from equistein.runs import Outcome, seed_outcome
from equistein.samplers import from_blackjax, MALA, ParallelTempering, TemperingState

_HMC_STEP, _MALA_STEP = 0.01, 1e-4  # the first ones
_HMC_ACCEPTANCE = 0.65
_STEEPEST = 1_000.0  # the longest drift of MALA


def entries(config: ClusterConfig) -> list[Entry]:
    """Return the two starts."""

    def fcc(key: Key, num: int) -> Particles:
        del key  # there is one such minimum
        return jnp.repeat(jnp.asarray(minima()[:1]), num, axis=0)

    starts = {
        "fcc": (
            fcc,
            "All points of all ladders begin at the global minimum, the truncated "
            "octahedron of energy -173.93.",
        ),
        "liquid": (
            cluster(config.temperatures[0]).start,
            "All points begin as disordered clusters. Those that freeze fall into the "
            "icosahedral funnel, whose lowest minimum has energy -173.25.",
        ),
    }
    return [
        Entry(name, functools.partial(_tempered, config, start), note,
              label=LABELS[name], trains=True)
        for name, (start, note) in starts.items()
    ]  # fmt: skip


@functools.lru_cache(2)
def sampler(config: ClusterConfig) -> ParallelTempering:
    """Return the tempering of the cluster."""
    target = cluster(config.temperatures[0])
    project = target.group.project
    if config.leapfrog_steps > 1:
        import blackjax

        inner = from_blackjax(
            blackjax.hmc, num_integration_steps=config.leapfrog_steps,
            step_size=_HMC_STEP, acceptance=_HMC_ACCEPTANCE, project=project,
        )  # fmt: skip
    else:
        inner = MALA(_MALA_STEP, score_clip=_STEEPEST, project=project)
    ladder = config.temperatures[0] / np.asarray(config.temperatures)
    return ParallelTempering(inner, ladder, num_adapt=config.num_warm_up)


def _tempered(
    config: ClusterConfig, start: Callable[[Key, int], Particles], trial: Trial
) -> Outcome:
    """Return one set of ladders from a start."""
    began = time.perf_counter()
    target, tempering = cluster(config.temperatures[0]), sampler(config)
    key, state = trial.key(1), tempering.init(start(trial.key(0), config.num_ladders))
    size = config.num_steps // config.num_rounds
    for _ in range(-(-config.num_warm_up // size)):
        state, *_ = moved(key, tempering, target.log_density, state, size)
    first, rounds = _trips(state), []
    for _ in range(config.num_rounds):
        state, energies, acceptance = moved(
            key, tempering, target.log_density, state, size
        )
        energies = config.temperatures[0] * np.asarray(energies, float)
        _, bottoms, orders = _relaxed(state, config.quench_steps)
        rounds.append(
            {
                "energy": energies.mean(axis=0),
                "energy_square": (energies**2).mean(axis=0),
                "bond_order": np.asarray(orders),
                "bottom": np.asarray(bottoms),
                "acceptance": float(acceptance),
                "step": int(state.step),
                "evaluations": int(state.evaluations),
            }
        )
    seconds = time.perf_counter() - began
    return _outcome(config, state, rounds, _trips(state) - first, seconds)


@eqx.filter_jit
def moved(
    key: Key,
    sampler: ParallelTempering,
    log_density: LogDensity,
    state: TemperingState,
    num_steps: int,
) -> tuple[TemperingState, Float[Array, "step temperature ladder"], Scalar]:
    """Take steps; return the energies that they saw, and the coldest acceptance.

    The energies are in units of the coldest temperature.
    """

    def step(state, _):
        step_key = jr.fold_in(key, state.step)
        state, info = sampler.step(step_key, state, log_density)
        return state, (-state.replicas.walker.value, info.acceptance)

    state, (energies, rates) = jax.lax.scan(step, state, length=num_steps)
    return state, energies, jnp.mean(rates)


def _relaxed(
    state: TemperingState, num_steps: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return where all points come to rest, the energies and the bond order there."""
    points = state.replicas.walker.point
    ends, *numbers = quenched(points.reshape(-1, *points.shape[2:]), num_steps)
    bottoms, orders = (np.asarray(x).reshape(points.shape[:2]) for x in numbers)
    return np.asarray(ends).reshape(points.shape), bottoms, orders


def _trips(state: TemperingState) -> np.ndarray:
    """Return the number of round trips of each ladder's points."""
    return np.asarray(jnp.sum(state.replicas.round_trips, axis=0))


def _outcome(
    config: ClusterConfig,
    state: TemperingState,
    rounds: Sequence[Mapping[str, Any]],
    trips: np.ndarray,
    seconds: float,
) -> Outcome:
    """Return the outcome of a set of ladders."""
    kept = {name: np.stack([one[name] for one in rounds]) for name in rounds[0]}
    ends = _relaxed(state, config.quench_steps)[0][0]
    stacked = {name: kept[name] for name in ("energy", "energy_square", "bond_order")}
    stacked |= {
        "rejections": state.statistics.rejections,
        "round_trips": trips,
        "coldest": ends,
        "between": np.convolve(config.temperatures, [0.5, 0.5], "valid"),
    }
    outcome = seed_outcome({}, state.particles, stacked=stacked)
    temperatures = np.asarray(config.temperatures)
    hottest, highest = peak(outcome, temperatures)
    weights = fcc_weight(outcome).values
    metrics = {
        "peak_temperature": hottest,
        "peak_heat_capacity": highest,
        "coldest_heat_capacity": heat_capacity(outcome, temperatures).values[0],
        "coldest_fcc_weight": weights[0],
        "lowest_energy": kept["bottom"].min(),
        "round_trips": trips.mean(),
        "acceptance": kept["acceptance"].mean(),
        "evaluations": kept["evaluations"][-1] * config.num_ladders,
        "seconds": seconds,
    }
    history = {
        "step": kept["step"],
        "evaluations": kept["evaluations"],
        "fcc_weight": np.mean(kept["bond_order"] > FCC_ORDER, axis=(1, 2)),
        "mean_energy": np.mean(kept["energy"], axis=(1, 2)),
    }
    return seed_outcome(metrics, state.particles, history=history, stacked=stacked)


def compared(config: ClusterConfig, outcomes: Mapping[str, Outcome]) -> dict:
    """Return how far apart the two starts are, in joint errors."""
    if set(outcomes) != set(LABELS):
        return {}
    both = _comparison(config, outcomes)
    gaps = {
        "heat_capacity_gap": both.capacity_gaps.max(),
        "fcc_weight_gap": both.weight_gaps.max(),
        "converged": float(both.has_converged),
    }
    return {
        name: {
            metric: np.full_like(outcome.metrics["seconds"], gap)
            for metric, gap in gaps.items()
        }
        for name, outcome in outcomes.items()
    }


def conclusion(config: ClusterConfig, outcomes: Mapping[str, Outcome]) -> str:
    """Return a plain word on whether it has converged."""
    if set(outcomes) != set(LABELS):
        return "Has NOT converged: not both starts have run."
    return _comparison(config, outcomes).sentence()


def _comparison(config: ClusterConfig, outcomes: Mapping[str, Outcome]) -> Comparison:
    labeled = {LABELS[name]: outcomes[name] for name in LABELS}
    return Comparison(np.asarray(config.temperatures), labeled)


LJ38 = Experiment(
    name="lj38",
    figure="beyond the paper",
    headlines=("heat_capacity_gap", "fcc_weight_gap", "peak_temperature"),
    summary="LJ-38 by parallel tempering from two starts: heat capacity, and the "
    "weights of the two funnels",
    presets={
        "smoke": ClusterConfig(
            num_ladders=1, temperatures=(0.15, 0.2, 0.3), leapfrog_steps=1,
            num_warm_up=10, num_steps=20, num_rounds=2, quench_steps=20,
        ),
        "quick": ClusterConfig(),
        "paper": ClusterConfig(
            num_seeds=4, num_ladders=8, num_warm_up=50_000, num_steps=100_000,
            num_rounds=200,
        ),
    },
    entries=entries,
    figures=FIGURES,
    compare=compared,
    conclude=conclusion,
    check=check,
)  # fmt: skip
