"""Samplers of particle systems over budgets of evaluations: DW-4, LJ-13, LJ-55."""

import dataclasses
from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np

from equistein._types import Particles
from equistein.experiments.engine._checks import has_blackjax
from equistein.experiments.engine._experiment import Entry, Stages, Trial
from equistein.experiments.systems._chains import CHAINS, through_budgets
from equistein.experiments.systems._config import SystemConfig
from equistein.experiments.systems._samplers import (
    ANNEALED,
    Curves,
    over_budgets,
    Snapshot,
)
from equistein.experiments.systems._system import (
    reference,
    System,
)
from equistein.metrics import pair_distances
from equistein.runs import FLOOR, Outcome, seed_outcome

_NUM_DRAWS = 50  # of exact samples, in all, for the floor


def entries(system: System, config: SystemConfig) -> list[Entry]:
    """Return the samplers, with the floor first."""
    num_floors = max(config.num_seeds, 2)

    def floor(trial: Trial) -> Outcome:
        draws = [
            system.floor(config.num_particles, index, config.num_reference)
            for index in range(trial.index, _NUM_DRAWS, num_floors)
        ]
        outcome = _outcome(config, system, draws[0])
        exact = reference(system, config.num_reference, 0)
        rows = [system.quality(exact, points) for points in draws]
        means = {
            name: np.array([np.mean([float(row[name]) for row in rows])])
            for name in rows[0]
        }
        return dataclasses.replace(outcome, metrics=outcome.metrics | means)

    def sampled(curves: Curves) -> Stages:
        def stages(trials: Sequence[Trial]) -> list[Outcome]:
            starts = [
                system.target.start(trial.key(0), config.num_particles)
                for trial in trials
            ]
            keys = jnp.stack([trial.key(1) for trial in trials])
            return list(map(outcome, curves(keys, jnp.stack(starts))))

        return stages

    def outcome(snapshots: list[Snapshot]) -> Outcome:
        before = system.start_evaluations
        snapshots = [s._replace(evaluations=s.evaluations + before) for s in snapshots]
        return _outcome(config, system, snapshots[-1].points, snapshots)

    listed = [Entry(FLOOR, floor, label="as many exact samples", num_seeds=num_floors)]
    for name in _that_can_run(config):
        if name in ANNEALED:
            curves, note = over_budgets(config, system, name), ANNEALED[name][1]
        else:
            curves, note = through_budgets(config, system, name), CHAINS[name].note
        listed.append(Entry(name, sampled(curves), note, together=True))
    return listed


def check(config: SystemConfig) -> None:
    """Raise `ValueError` for a sampler that there is not, or where none can run."""
    known = (*ANNEALED, *CHAINS)
    for name in config.samplers:
        if name not in known:
            raise ValueError(
                f"`samplers` must be some of {', '.join(known)}, but got {name!r}."
            )
    if not _that_can_run(config):
        raise ValueError(
            f"`samplers` must name one that can run, but got {config.samplers!r}: "
            "some need BlackJAX, pip install 'equistein[bayes]'."
        )


def _that_can_run(config: SystemConfig) -> list[str]:
    """Return the samplers, without those of BlackJAX where it is not installed."""
    there = has_blackjax()
    return [
        name
        for name in config.samplers
        if there or name not in CHAINS or not CHAINS[name].needs_blackjax(config)
    ]


def _outcome(
    config: SystemConfig,
    system: System,
    points: Particles,
    snapshots: Sequence[Snapshot] = (),
) -> Outcome:
    """Return the outcome of particles, and of those on the way to them."""
    exact = reference(system, config.num_reference, 0)
    metrics, history = system.metrics(exact, points, config.num_geometric), {}
    if snapshots:
        rows = [system.quality(exact, snapshot.points) for snapshot in snapshots]
        steps = [float(snapshot.evaluations) for snapshot in snapshots]
        history = {name: [row[name] for row in rows] for name in rows[0]}
        history |= {"step": steps}
        last = snapshots[-1]
        spent = {"evaluations": last.evaluations, "seconds": last.seconds}
        metrics |= spent | last.numbers
    arrays = {
        "energies": system.energy(points),
        "distances": pair_distances(points).ravel()[::10],
    }
    return seed_outcome(metrics, points, history=history, arrays=arrays)
