"""Samplers of particle systems over budgets of evaluations: DW-4, LJ-13, LJ-55."""

import dataclasses
import functools
import importlib.util
from collections.abc import Mapping, Sequence

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
from equistein.experiments.systems._chains import CHAINS, through_budgets
from equistein.experiments.systems._config import SystemConfig
from equistein.experiments.systems._samplers import (
    ANNEALED,
    Curve,
    over_budgets,
    Snapshot,
)
from equistein.experiments.systems._system import (
    DW4_SYSTEM,
    LJ13_SYSTEM,
    LJ55_SYSTEM,
    reference,
    System,
)
from equistein.metrics import pair_distances
from equistein.runs import FLOOR, Outcome, seed_outcome

_NUM_STATES = 5
_NUM_DRAWS = 50  # of exact samples, in all, for the floor
_HAS_BLACKJAX = importlib.util.find_spec("blackjax") is not None


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
            name: np.mean([float(row[name]) for row in rows])[None] for name in rows[0]
        }
        return dataclasses.replace(outcome, metrics=outcome.metrics | means)

    def sampled(curve: Curve) -> Stage:
        def stage(trial: Trial) -> Outcome:
            start = system.target.start(trial.key(0), config.num_particles)
            snapshots = [
                snapshot._replace(
                    evaluations=snapshot.evaluations + system.start_evaluations
                )
                for snapshot in curve(trial.key(1), start)
            ]
            return _outcome(config, system, snapshots[-1].points, snapshots)

        return stage

    listed = [Entry(FLOOR, floor, label="as many exact samples", num_seeds=num_floors)]
    for name in config.samplers:
        if name in ANNEALED:
            curve, note = over_budgets(config, system, name), ANNEALED[name][1]
        elif CHAINS[name].needs_blackjax(config) and not _HAS_BLACKJAX:
            continue
        else:
            curve, note = through_budgets(config, system, name), CHAINS[name].note
        listed.append(Entry(name, sampled(curve), note))
    return listed


def check(config: SystemConfig) -> None:
    """Raise `ValueError` for a sampler that there is not."""
    known = (*ANNEALED, *CHAINS)
    for name in config.samplers:
        if name not in known:
            raise ValueError(
                f"`samplers` must be some of {', '.join(known)}, but got {name!r}."
            )


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

    def curve(name: str, metric: str, label: str, caption: str) -> Curves:
        return Curves(
            name, metric, label, level=metric, caption=caption,
            x_label="score evaluations a particle", log_x=True, log_y=True,
            limits=lambda level: (0.5 * level, 100 * level),
        )  # fmt: skip

    def histogram(
        name: str, label: str, limits: tuple[float, float], bins: int
    ) -> Histograms:
        return Histograms(name, name, label, limits=limits, bins=bins, floor_line=True)

    return (
        curve(
            "energy-w2",
            "energy_w2",
            "Wasserstein-2 of the energies",
            "Wasserstein-2 distance of the energies from those of the reference, "
            "against the evaluations of the score that each particle took: mean and "
            "range over the seeds. The line is what as many independent exact samples "
            "reach.",
        ),
        curve(
            "distance-tv",
            "distance_tv",
            "total variation of the distances",
            "Total variation of the histograms of pair distances (200 bins).",
        ),
        histogram("energies", "energy", system.energies, 64),
        histogram("distances", "distance of two particles", system.limits, 80),
        Configurations(
            "configurations", 8, caption="Samples of each sampler, not aligned."
        ),
        Bars(
            "states",
            [f"state_{i + 1}" for i in range(_NUM_STATES)],
            "fraction of the samples",
        ),
    )


def _experiment(
    system: System,
    title: str,
    quick: SystemConfig,
    smoke: SystemConfig,
    paper: SystemConfig,
) -> Experiment:
    """Return the experiment that samples a system from its energy alone."""
    return Experiment(
        name=f"{system.name}-sampling",
        figure="beyond the paper",
        summary=f"sample {title} from its energy: E-SVGD beside vanilla, Langevin, "
        "MALA, HMC, NUTS, MCLMC, tempering, SMC",
        presets={"smoke": smoke, "quick": quick, "paper": paper},
        entries=functools.partial(entries, system),
        check=check,
        figures=figures(system),
        compare=compare,
    )


_DW4 = SystemConfig()
_LJ13 = SystemConfig(
    num_steps=2_500,
    budgets=(50, 100, 200, 400, 1_000),
    pair_budget=100,
    num_reference=10_000,
    num_geometric=200,
    stein_step=0.002,
    noise=3e-4,
    start_inverse_temperature=1.0,
    bin_width=0.7,
    reach=5.0,
    quiet_step_size=0.02,
    mala_step_size=1e-3,
    hamiltonian_step_size=0.02,
    score_clip=300.0,
)
_LJ55 = SystemConfig(
    samplers=(
        *("equivariant", "vanilla", "mala", "hmc", "nuts", "mclmc", "tempering", "smc"),
        *("svgd-hmc", "svgd-nuts", "svgd-mclmc", "svgd-tempering", "hmc-svgd"),
    ),
    num_seeds=3,
    num_steps=950,
    budgets=(200, 450),
    pair_budget=950,
    num_reference=4_000,
    num_geometric=100,
    stein_step=5e-4,
    noise=2e-4,
    start_inverse_temperature=1.0,
    reach=8.0,
    quiet_step_size=0.02,
    mala_step_size=2e-4,
    hamiltonian_step_size=0.02,
    inner="hmc",
    score_clip=500.0,
)
_SMOKE = {
    **{"num_seeds": 2, "num_steps": 40, "budgets": (10, 20), "pair_budget": 40},
    **{"num_warmup": 20, "num_ladders": 4},
}

DW4_SAMPLING = _experiment(
    DW4_SYSTEM,
    "DW-4",
    quick=_DW4,
    smoke=dataclasses.replace(
        _DW4, num_particles=32, num_reference=256, num_geometric=16, **_SMOKE
    ),
    paper=dataclasses.replace(
        _DW4, num_seeds=10, num_particles=2_000, num_steps=20_000
    ),
)
LJ13_SAMPLING = _experiment(
    LJ13_SYSTEM,
    "LJ-13",
    quick=_LJ13,
    smoke=dataclasses.replace(
        _LJ13, num_particles=16, num_reference=64, num_geometric=8, **_SMOKE
    ),
    paper=dataclasses.replace(
        _LJ13, num_seeds=10, num_steps=20_000, num_geometric=1_000
    ),
)
LJ55_SAMPLING = _experiment(
    LJ55_SYSTEM,
    "LJ-55",
    quick=_LJ55,
    smoke=dataclasses.replace(
        _LJ55, num_particles=8, num_reference=32, num_geometric=4,
        **_SMOKE,
    ),
    paper=dataclasses.replace(
        _LJ55, num_seeds=5, num_steps=19_950,
        budgets=(200, 450, 950, 1_950, 4_950, 9_950), pair_budget=1_950,
    ),
)  # fmt: skip
