"""Samplers of particle systems over budgets of evaluations: DW-4, LJ-13, LJ-55."""

import dataclasses
from collections.abc import Mapping, Sequence

import jax.numpy as jnp
import numpy as np

from equistein.metrics import pair_distances
from equistein.runs import FLOOR, Metric, Outcome, seed_outcome
from experiments._chains import CHAINS, through_budgets
from experiments._engine import Entry, Experiment, has_blackjax, Stages, Trial
from experiments._figures import (
    Bars,
    Configurations,
    Curves,
    Histograms,
)
from experiments._system_samplers import ANNEALED, over_budgets, Snapshot, Snapshots
from experiments._systems import (
    reference,
    System,
    SystemConfig,
    SYSTEMS,
)
from experiments._types import Particles

_NUM_DRAWS = 50  # of exact samples, in all, for the floor


def entries(config: SystemConfig) -> list[Entry]:
    """Return the samplers, with the floor first."""
    system = SYSTEMS[config.system]
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

    def sampled(curves: Snapshots) -> Stages:
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


_NUM_STATES = 5
_PLAIN = ("mala", "nuts")  # the samplers that everyone has


def conclusion(config: SystemConfig, outcomes: Mapping[str, Outcome]) -> str:
    """Return which samplers are best at the end, and whether plain ones are as good."""
    ends = {
        name: outcome.metrics["energy_w2"]
        for name, outcome in outcomes.items()
        if outcome.history
    }
    if not ends:
        return ""
    best = min(ends, key=lambda name: ends[name].mean())
    # What is at the floor is as good as what is below it.
    floor = outcomes[FLOOR].metrics["energy_w2"] if FLOOR in outcomes else ends[best]
    level = max(ends[best], floor, key=np.mean)
    as_good = [name for name in ends if name != best and _reaches(ends[name], level)]
    spent = outcomes[best].metrics["evaluations"].mean()
    text = f"Nearest to the reference after {spent:,.0f} evaluations a particle is "
    text += (
        f"{best}, at a Wasserstein-2 distance of the energies of {_range(ends[best])}"
    )
    if FLOOR in outcomes:
        text += f"; as many exact samples are at {floor.mean():.3g}"
    one = ends[best].size == 1
    seeds = "one seed" if one else f"{ends[best].size} seeds"
    text += f" ({config.num_particles:,} particles, {seeds}). "
    near = "As low as exact samples, of one seed, which tells no error"
    if not one:
        near = "Within two standard errors of it, or of exact samples"
    text += f"{near}: {', '.join(as_good) or 'none'}."
    for name in _PLAIN:
        if name in ends and name != best:
            is_good = "one of them" if name in as_good else "worse"
            text += f" {name.upper()} is {is_good}: {_range(ends[name])}."
    return text


def _reaches(ours: np.ndarray, level: np.ndarray) -> bool:
    """Return whether values are as low as others, within two standard errors."""
    if min(ours.size, level.size) < 2:
        return bool(ours.mean() <= level.mean())
    error = np.hypot(*(x.std(ddof=1) / x.size**0.5 for x in (ours, level)))
    return bool(ours.mean() - level.mean() <= 2 * error)


def _range(values: np.ndarray) -> str:
    return f"{values.mean():.3g} ({values.min():.3g} to {values.max():.3g})"


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


def _curve(name: str, metric: str, label: str, caption: str) -> Curves:
    return Curves(
        name, metric, label, level=metric, caption=caption,
        x_label="score evaluations a particle", log_x=True, log_y=True,
        limits=lambda level: (None, 100 * level),
    )  # fmt: skip


def _histogram(name: str, label: str, limits: str, bins: int) -> Histograms:
    return Histograms(
        name, name, label, bins=bins, line_of=FLOOR,
        limits=lambda config: getattr(SYSTEMS[config.system], limits),
    )  # fmt: skip


_FIGURES = (
    _curve(
        "energy-w2",
        "energy_w2",
        "Wasserstein-2 of the energies",
        "Wasserstein-2 distance of the energies from those of the reference, "
        "against the evaluations of the score that each particle took: mean and "
        "range over the seeds. The line is what as many independent exact samples "
        "reach.",
    ),
    _curve(
        "distance-tv",
        "distance_tv",
        "total variation of the distances",
        "Total variation of the histograms of pair distances (200 bins).",
    ),
    _histogram("energies", "energy", "energies", 64),
    _histogram("distances", "distance of two particles", "limits", 80),
    Configurations(
        "configurations", 8, caption="Samples of each sampler, not aligned."
    ),
    Bars(
        "states",
        [f"state_{i + 1}" for i in range(_NUM_STATES)],
        "fraction of the samples",
    ),
)


_DW4 = SystemConfig()
_LJ13 = SystemConfig(
    system="lj13",
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
    system="lj55",
    samplers=(
        *("equivariant", "vanilla", "mala", "hmc", "nuts", "mclmc", "tempering", "smc"),
        *("svgd-hmc", "svgd-nuts", "svgd-mclmc", "svgd-tempering", "hmc-svgd"),
    ),
    num_seeds=2,
    num_steps=950,
    budgets=(200, 450),
    pair_budget=450,
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

METRICS = {
    "distance_tv": Metric("distance of pair distances (total variation)", "lower"),
    "energy_w2": Metric("distance of energies (Wasserstein-2)", "lower"),
    "evaluations": Metric("evaluations of the score"),
    "evaluations_to_mala": Metric(
        "evaluations of the score until as good as MALA", "lower"
    ),
    "geometric_w2": Metric("distance of clouds, superimposed (Wasserstein-2)", "lower"),
    "mean_energy": Metric("mean energy"),
}

PARTICLE_SAMPLING = Experiment(
    name="particle-sampling",
    figure="beyond the paper",
    summary="sample DW-4, LJ-13 or LJ-55 from its energy: E-SVGD beside vanilla, "
    "Langevin, MALA, HMC, NUTS, MCLMC, tempering, SMC",
    choice="system",
    presets={
        "smoke": {
            "dw4": dataclasses.replace(
                _DW4, num_particles=32, num_reference=256, num_geometric=16, **_SMOKE
            ),
            "lj13": dataclasses.replace(
                _LJ13, samplers=("equivariant", "mala", "tempering", "smc"),
                num_particles=16, num_reference=64, num_geometric=8, **_SMOKE,
            ),
            "lj55": dataclasses.replace(
                _LJ55, samplers=("vanilla", "hmc", "svgd-tempering", "hmc-svgd"),
                num_particles=4, num_reference=16, num_geometric=2, **_SMOKE,
            ),
        },
        "quick": {"dw4": _DW4, "lj13": _LJ13, "lj55": _LJ55},
        "paper": {
            "dw4": dataclasses.replace(
                _DW4, num_seeds=10, num_particles=2_000, num_steps=20_000
            ),
            "lj13": dataclasses.replace(
                _LJ13, num_seeds=10, num_steps=20_000, num_geometric=1_000
            ),
            "lj55": dataclasses.replace(
                _LJ55, num_seeds=5, num_steps=19_950,
                budgets=(200, 450, 950, 1_950, 4_950, 9_950), pair_budget=1_950,
            ),
        },
    },
    entries=entries,
    check=check,
    figures=_FIGURES,
    metrics=METRICS,
    headlines=("energy_w2", "distance_tv", "geometric_w2", "evaluations_to_mala"),
    compare=compare,
    conclude=conclusion,
)  # fmt: skip
