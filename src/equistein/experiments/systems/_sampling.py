"""Samplers of particle systems over budgets of evaluations: DW-4 and LJ-13."""

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
from equistein.experiments.systems._config import SystemConfig
from equistein.experiments.systems._nuts import nuts
from equistein.experiments.systems._samplers import (
    Curve,
    over_budgets,
    SAMPLERS,
    Snapshot,
)
from equistein.experiments.systems._system import (
    DW4_SYSTEM,
    LJ13_SYSTEM,
    reference,
    System,
)
from equistein.metrics import pair_distances
from equistein.runs import FLOOR, Outcome, seed_outcome

_NUM_STATES = 5


def entries(system: System, config: SystemConfig) -> list[Entry]:
    """Return the samplers, with the floor first."""
    num_floors = max(config.num_seeds, 2)

    def floor(trial: Trial) -> Outcome:
        points = system.floor(config.num_particles, trial.index, num_floors)
        return _outcome(config, system, points)

    def sampled(curve: Curve) -> Stage:
        def stage(trial: Trial) -> Outcome:
            start = system.target.start(trial.key(0), config.num_particles)
            snapshots = curve(trial.key(1), start)
            return _outcome(config, system, snapshots[-1].points, snapshots)

        return stage

    listed = [
        Entry(FLOOR, floor, label="as many exact samples", num_seeds=num_floors),
        *(
            Entry(name, sampled(over_budgets(config, system, name)), note)
            for name, (_, note) in SAMPLERS.items()
        ),
    ]
    if importlib.util.find_spec("blackjax") is not None:
        stage = sampled(functools.partial(nuts, config, system))
        listed.append(Entry("nuts", stage, _NUTS))
    return listed


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
        "MALA, NUTS",
        presets={"smoke": smoke, "quick": quick, "paper": paper},
        entries=functools.partial(entries, system),
        figures=figures(system),
        compare=compare,
    )


_NUTS = (
    "BlackJAX's NUTS with a fixed step size, from where MALA is after 100 evaluations; "
    "it is not annealed. Present where BlackJAX is installed."
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
    nuts_step_size=0.02,
    score_clip=300.0,
)
_SMOKE = {"num_seeds": 2, "num_steps": 40, "budgets": (10, 20), "pair_budget": 40}

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
