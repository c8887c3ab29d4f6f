"""Samplers of particle systems over budgets of evaluations: DW-4, LJ-13, LJ-55."""

import dataclasses
from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np

from equistein.metrics import geometric_wasserstein, virial
from equistein.runs import FLOOR, Outcome, seed_outcome
from experiments._engine import (
    Entry,
    Experiment,
    has_package,
    Keys,
    Particles,
    side_by_side,
    Stages,
    Starts,
    Trial,
)
from experiments._figures import configurations, curves, histograms
from experiments._particle_config import ANNEALED, CHAINS, needs_blackjax, SystemConfig
from experiments._particle_samplers import over_budgets, Snapshot, through_budgets
from experiments._systems import reference, System, SYSTEMS

_NUM_DRAWS = 50  # of exact samples, in all, for the floor


def entries(config: SystemConfig) -> list[Entry]:
    """Return the samplers, with the floor first."""
    system, num = SYSTEMS[config.system], config.num_particles
    num_floors = max(config.num_seeds, 2)

    def floor(trial: Trial) -> Outcome:
        exact, others = (reference(system, config.num_reference, i) for i in (0, 1))
        draws = [
            others[np.random.default_rng(index).choice(len(others), num, replace=False)]
            for index in range(trial.index, _NUM_DRAWS, num_floors)
        ]
        outcome = _outcome(config, system, draws[0])
        rows = [system.quality(exact, points) for points in draws]
        means = {
            name: np.array([np.mean([float(row[name]) for row in rows])])
            for name in rows[0]
        }
        return dataclasses.replace(outcome, metrics=outcome.metrics | means)

    def stages(name: str) -> Stages:
        run = over_budgets if name in ANNEALED else through_budgets
        looks = run(config, system, name)

        def sample(keys: Keys, start: Starts) -> list[Outcome]:
            return [
                _outcome(config, system, snapshots[-1][0], snapshots)
                for snapshots in looks(keys, start)
            ]

        return side_by_side(lambda key: system.target.start(key, num), sample)

    notes = ANNEALED | CHAINS
    return [
        Entry(FLOOR, floor, label="as many exact samples", num_seeds=num_floors),
        *(
            Entry(name, stages(name), notes[name], together=True)
            for name in _that_can_run(config)
        ),
    ]


def check(config: SystemConfig) -> None:
    """Raise `ValueError` where no sampler can run."""
    if not _that_can_run(config):
        raise ValueError(
            f"`samplers` must name one that can run, but got {config.samplers!r}: "
            "some need BlackJAX, pip install 'equistein[bayes]'."
        )


def _that_can_run(config: SystemConfig) -> list[str]:
    """Return the samplers, without those of BlackJAX where it is not installed."""
    there = has_package("blackjax")
    return [n for n in config.samplers if there or not needs_blackjax(config, n)]


def _outcome(
    config: SystemConfig,
    system: System,
    points: Particles,
    snapshots: Sequence[Snapshot] = (),
) -> Outcome:
    """Return the outcome of particles, and of those on the way to them."""
    exact, target = reference(system, config.num_reference, 0), system.target
    few = min(config.num_geometric, len(points), len(exact))
    geometric = geometric_wasserstein(points[:few], exact[:few], target.group)
    metrics = system.quality(exact, points) | {
        "geometric_w2": geometric.value,
        "mean_energy": jnp.mean(system.energy(points)),
        "virial": virial(target.log_density, points),
    }
    history: dict[str, list] = {}
    if snapshots:
        rows = [system.quality(exact, each) for each, _ in snapshots]
        history = {name: [row[name] for row in rows] for name in rows[0]}
        before = system.start_evaluations
        history["step"] = [before + float(spent) for _, spent in snapshots]
        metrics["evaluations"] = history["step"][-1]
    arrays = {"energies": system.energy(points)}
    return seed_outcome(metrics, points, history=history, arrays=arrays)


_DW4 = SystemConfig()
_LJ13 = SystemConfig(
    system="lj13", num_reference=10_000, num_geometric=200,
    num_steps=2_500, budgets=(50, 100, 200, 400, 1_000), pair_budget=100,
    stein_step=0.002, noise=3e-4, start_inverse_temperature=1.0, score_clip=300.0,
    quiet_step_size=0.02, mala_step_size=1e-3, hamiltonian_step_size=0.02,
    bin_width=0.7, reach=5.0,
)  # fmt: skip
_LJ55 = SystemConfig(
    system="lj55",
    samplers=(
        *("equivariant", "vanilla", "mala", "hmc", "nuts", "mclmc", "tempering", "smc"),
        *("svgd-hmc", "svgd-nuts", "svgd-mclmc", "svgd-tempering", "hmc-svgd"),
    ),
    num_seeds=2, num_reference=4_000, num_geometric=100,
    num_steps=950, budgets=(200, 450), pair_budget=450,
    stein_step=5e-4, noise=2e-4, start_inverse_temperature=1.0, score_clip=500.0,
    quiet_step_size=0.02, mala_step_size=2e-4, hamiltonian_step_size=0.02,
    inner="hmc",
)  # fmt: skip
_SMOKE = {
    **{"num_seeds": 2, "num_steps": 40, "budgets": (10, 20), "pair_budget": 40},
    **{"num_adapt": 20, "num_ladders": 4},
}

PARTICLE_SAMPLING = Experiment(
    name="particle-sampling",
    figure="beyond the paper",
    summary="sample DW-4, LJ-13 or LJ-55 from its energy: E-SVGD beside vanilla, "
    "MALA, HMC, NUTS, MCLMC, tempering, SMC",
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
    figures=(
        curves(
            "energy-w2",
            "energy_w2",
            "Wasserstein-2 of the energies",
            level="energy_w2",
            x_label="score evaluations a particle",
            log_x=True,
            log_y=True,
            limits=lambda level: (None, 100 * level),
            caption="Wasserstein-2 distance of the energies from those of the "
            "reference, against the evaluations of the score that each particle took: "
            "mean and range over the seeds. The line is what as many independent exact "
            "samples reach.",
        ),
        histograms(
            "energies", "energies", "energy", bins=64, line_of=FLOOR,
            limits=lambda config: SYSTEMS[config.system].energies,
        ),
        configurations(8, caption="Samples of each sampler, not aligned."),
    ),
    headlines=("energy_w2", "distance_tv", "geometric_w2"),
)  # fmt: skip
