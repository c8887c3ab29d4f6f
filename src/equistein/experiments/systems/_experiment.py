"""The experiment on a particle system: samplers over budgets of score evaluations."""

import functools
import importlib.util
import time
from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from equistein._types import Particles
from equistein.experiments.engine._experiment import Entry, Experiment, Stage, Trial
from equistein.experiments.engine._figures import (
    AbstractFigure,
    Bars,
    Configurations,
    Curves,
    Histograms,
)
from equistein.experiments.engine._levels import density_of_floor, level_of_floor
from equistein.experiments.systems._nuts import nuts_curve
from equistein.experiments.systems._samplers import Sampler, SystemSamplers
from equistein.experiments.systems._system import (
    measure,
    measure_all,
    reference,
    System,
    SystemConfig,
)
from equistein.metrics import pair_distances
from equistein.runs import FLOOR, Outcome, seed_outcome

_NUM_STATES = 5


def system_experiment(
    name: str, system: System, presets: Mapping[str, SystemConfig]
) -> Experiment:
    """Return the experiment that samples a system from its energy alone."""
    title = name.removesuffix("-sampling").upper().replace("DW4", "DW-4")
    return Experiment(
        name=name,
        figure="beyond the paper",
        summary=f"sample {title.replace('LJ13', 'LJ-13')} from its energy: E-SVGD "
        "beside vanilla, Langevin, MALA, NUTS",
        presets=presets,
        entries=functools.partial(entries, system),
        figures=figures(system),
        compare=compare,
    )


def entries(system: System, config: SystemConfig) -> list[Entry]:
    """Return the samplers, with the floor first."""
    chosen = SystemSamplers(config, system)
    many, few = config.num_steps, min(config.pair_budget, config.num_steps)
    listed = [
        Entry(
            name=FLOOR,
            label="as many exact samples",
            stage=functools.partial(_floor, config, system),
            num_seeds=max(config.num_seeds, 2),
        ),
        *(
            Entry(
                name=name,
                stage=_over_budgets(config, system, sampler, last),
                note=_NOTES[name],
            )
            for name, sampler, last in (
                ("equivariant", chosen.equivariant, many),
                ("thinned", chosen.thinned, many),
                ("quiet", chosen.quiet, few),
                ("vanilla", chosen.vanilla, few),
                ("langevin", chosen.langevin, many),
                ("mala", chosen.mala, many),
            )
        ),
    ]
    if importlib.util.find_spec("blackjax") is not None:
        nuts = _nuts(config, system)
        listed.append(Entry(name="nuts", stage=nuts, note=_NOTES["nuts"]))
    return listed


def _start(config: SystemConfig, system: System, trial: Trial) -> Particles:
    return system.target.start(trial.key(0), config.num_particles)


def _floor(config: SystemConfig, system: System, trial: Trial) -> Outcome:
    num = config.num_particles
    draws = reference(system, max(config.num_seeds, 2) * num, 1)
    return _outcome(config, system, draws[trial.index * num :][:num])


def _over_budgets(
    config: SystemConfig, system: System, sampler: Sampler, last: int
) -> Stage:
    """Return the stage that runs a sampler anew for each number of evaluations."""
    move = eqx.filter_jit(sampler)  # one compilation serves all numbers of steps
    budgets = sorted({b for b in config.budgets if b < last} | {last})

    def stage(trial: Trial) -> Outcome:
        start, rows = _start(config, system, trial), []
        points, numbers, seconds = start, {}, 0.0
        for budget in budgets:
            began = time.perf_counter()
            points, numbers = jax.block_until_ready(
                move(trial.key(1), start, jnp.asarray(budget))
            )
            seconds = time.perf_counter() - began
            rows.append((float(budget), _quality(config, system, points)))
        spent = {"evaluations": budgets[-1], "seconds": seconds}
        return _outcome(config, system, points, numbers | spent, rows)

    return stage


def _nuts(config: SystemConfig, system: System) -> Stage:
    chains = functools.cache(lambda: nuts_curve(config, system))

    def stage(trial: Trial) -> Outcome:
        snapshots = chains()(trial.key(1), _start(config, system, trial))
        rows = [(spent, _quality(config, system, p)) for spent, _, p in snapshots]
        spent, seconds, points = snapshots[-1]
        numbers = {"evaluations": spent, "seconds": seconds}
        return _outcome(config, system, points, numbers, rows)

    return stage


def _quality(
    config: SystemConfig, system: System, points: Particles
) -> dict[str, float]:
    return measure(system, reference(system, config.num_reference, 0), points)


def _outcome(
    config: SystemConfig,
    system: System,
    points: Particles,
    numbers: Mapping[str, Any] | None = None,
    rows: list[tuple[float, dict[str, float]]] | None = None,
) -> Outcome:
    exact = reference(system, config.num_reference, 0)
    history = {}
    if rows:
        history = {"step": np.array([float(spent) for spent, _ in rows])} | {
            name: np.array([row[name] for _, row in rows]) for name in rows[0][1]
        }
    return seed_outcome(
        measure_all(config, system, exact, points) | dict(numbers or {}),
        points,
        history=history,
        arrays={
            "energies": jax.vmap(lambda x: -system.target.log_density(x))(points),
            "distances": pair_distances(points).ravel()[::10],
        },
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
        spent = outcome.history["step"].mean(axis=0)
        return float(np.min(np.where(good, spent, np.inf)))

    return {
        name: {"evaluations_to_mala": np.full(config.num_seeds, first(outcome))}
        for name, outcome in outcomes.items()
        if outcome.history
    }


def figures(system: System) -> tuple[AbstractFigure, ...]:
    """Return the figures."""
    evaluations: dict[str, Any] = {
        "x_label": "score evaluations a particle",
        "limits": lambda level: (0.5 * level, 100 * level),
        "log_x": True,
        "log_y": True,
    }
    return (
        Curves(
            "energy-w2",
            "energy_w2",
            "Wasserstein-2 of the energies",
            level=level_of_floor("energy_w2"),
            caption="Wasserstein-2 distance of the energies from those of the "
            "reference, against the evaluations of the score that each particle took: "
            "mean and range over the seeds. The line is what as many independent exact "
            "samples reach.",
            **evaluations,
        ),
        Curves(
            "distance-tv",
            "distance_tv",
            "total variation of the distances",
            level=level_of_floor("distance_tv"),
            caption="Total variation of the histograms of pair distances (200 bins).",
            **evaluations,
        ),
        Histograms(
            "energies",
            "energies",
            "energy",
            limits=system.energies,
            bins=64,
            exact=density_of_floor("energies", system.energies),
        ),
        Histograms(
            "distances",
            "distances",
            "distance of two particles",
            limits=system.limits,
            bins=80,
            exact=density_of_floor("distances", system.limits),
        ),
        Configurations(
            "configurations", 8, caption="Samples of each sampler, not aligned."
        ),
        Bars(
            "states",
            [f"state_{i + 1}" for i in range(_NUM_STATES)],
            "fraction of the samples",
        ),
    )


_NOTES = {
    "equivariant": "E-SVGD with the `Moments` kernel on a smooth histogram of "
    "distances and Langevin noise, annealed; the last quarter of the evaluations is "
    "MALA, which takes the step's bias away. Its particles end as good as independent "
    "ones.",
    "thinned": "The same, and then the particles are chosen from sixteen snapshots of "
    "the last chains, so that they represent them: better than independent samples in "
    "what is measured here, and no longer independent.",
    "quiet": "E-SVGD without noise: the kernel pulled back along sorted distances, "
    "annealed. Under-dispersed, and biased where distances tie.",
    "vanilla": "SVGD with the median rule, annealed: under-dispersed.",
    "langevin": "The noise of `equivariant` alone, with smaller steps at the end.",
    "mala": "Annealed Metropolis-adjusted Langevin chains with an adapted step size: "
    "the baseline to beat.",
    "nuts": "BlackJAX's NUTS with a fixed step size, from where MALA is after 100 "
    "evaluations; it is not annealed. Present where BlackJAX is installed.",
}
