"""Run the samplers on a particle system over budgets and seeds."""

import importlib.util
import time
from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from equistein._types import Particles
from equistein.experiments._base import Stage
from equistein.experiments._system_samplers import nuts_curve, Sampler, samplers
from equistein.experiments._systems import (
    measure,
    measure_all,
    reference,
    System,
    SystemConfig,
)
from equistein.experiments._toy import seed_keys
from equistein.metrics import (
    pair_distances,
)
from equistein.runs import FLOOR, Outcome


def stages(config: SystemConfig, system: System, seed: int) -> dict[str, Stage]:
    """Return what makes the outcome of each sampler."""
    target = system.target
    starts = lambda: [
        target.start(key, config.num_particles)
        for key in seed_keys(seed, config.num_seeds, 0)
    ]
    keys = seed_keys(seed, config.num_seeds, 1)

    def exact() -> Float[Array, "n *shape"]:
        return reference(system, config.num_reference, 0)

    def sampled(sampler: Sampler, largest: int) -> Stage:
        def stage() -> Outcome:
            # One compilation serves all numbers of steps.
            move = eqx.filter_jit(sampler)
            last = min(largest, config.num_steps)
            budgets = sorted({b for b in config.budgets if b < last} | {last})
            runs, curve = [], []
            for key, start in zip(keys, starts(), strict=True):
                snapshots = [timed(move, key, start, budget) for budget in budgets]
                runs.append(snapshots[-1])
                curve.append(
                    [measure(system, exact(), points) for points, _ in snapshots]
                )
            at = np.tile(np.array(budgets, float), (len(runs), 1))
            return _outcome(config, system, exact(), runs, at, curve)

        return stage

    def timed(move, key, start, budget) -> tuple[Particles, dict[str, Any]]:
        began = time.perf_counter()
        points, numbers = jax.block_until_ready(move(key, start, jnp.asarray(budget)))
        seconds = time.perf_counter() - began
        numbers = {name: float(value) for name, value in numbers.items()}
        return points, numbers | {"evaluations": budget, "seconds": seconds}

    def nuts() -> Outcome:
        runs, curve, at = [], [], []
        chains = nuts_curve(config, system)
        for key, start in zip(keys, starts(), strict=True):
            snapshots = chains(key, start)
            at.append([spent for spent, _, _ in snapshots])
            curve.append([measure(system, exact(), points) for *_, points in snapshots])
            spent, seconds, points = snapshots[-1]
            runs.append((points, {"evaluations": spent, "seconds": seconds}))
        # Seeds differ in their evaluations by little; the curve takes the mean.
        length = min(map(len, curve))
        mean = np.mean([row[:length] for row in at], axis=0)
        curve = [rows[:length] for rows in curve]
        return _outcome(
            config, system, exact(), runs, np.tile(mean, (len(runs), 1)), curve
        )

    def floor() -> Outcome:
        num_sets = max(config.num_seeds, 2)
        draws = reference(system, num_sets * config.num_particles, 1)
        sets = jnp.split(draws, num_sets)
        runs = [(points, {}) for points in sets]
        return _outcome(config, system, exact(), runs)

    parts = {
        name: sampled(sampler, largest)
        for name, (sampler, largest) in samplers(config, system).items()
    }
    if importlib.util.find_spec("blackjax") is not None:
        parts["nuts"] = nuts
    return parts | {FLOOR: floor}


def _outcome(
    config: SystemConfig,
    system: System,
    exact: Float[Array, "n *shape"],
    runs: list[tuple[Particles, dict[str, Any]]],
    evaluations: np.ndarray | None = None,
    curve: list[list[dict[str, float]]] | None = None,
) -> Outcome:
    rows = [
        measure_all(config, system, exact, points) | extra for points, extra in runs
    ]
    history = {}
    if evaluations is not None and curve:
        history = {"step": evaluations} | {
            name: np.array([[row[name] for row in rows] for rows in curve])
            for name in curve[0][0]
        }
    samples = np.concatenate([np.asarray(points) for points, _ in runs])
    energy = jax.vmap(lambda x: -system.target.log_density(x))
    arrays = {
        "energies": np.asarray(energy(jnp.asarray(samples))),
        "distances": np.asarray(pair_distances(jnp.asarray(samples))).ravel()[::10],
    }
    return Outcome(
        metrics={name: np.array([row[name] for row in rows]) for name in rows[0]},
        samples=samples,
        history=history,
        arrays=arrays,
    )


def compare(config: SystemConfig, outcomes: Mapping[str, Outcome]) -> dict:
    """Return after how many evaluations each sampler has MALA's final quality.

    The smallest budget at which the energy distance, averaged over the seeds, is
    within a tenth of MALA's at its last; infinite where it never is.
    """
    if "mala" not in outcomes:
        return {}
    level = 1.1 * outcomes["mala"].history["energy_w2"][:, -1].mean()

    def first(outcome: Outcome) -> float:
        good = outcome.history["energy_w2"].mean(axis=0) <= level
        spent = outcome.history["step"][0]
        return float(np.min(np.where(good, spent, np.inf)))

    return {
        name: {"evaluations_to_mala": np.full(config.num_seeds, first(outcome))}
        for name, outcome in outcomes.items()
        if outcome.history
    }
