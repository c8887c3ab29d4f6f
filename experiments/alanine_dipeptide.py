"""Alanine dipeptide by a force field of OpenMM: free energies, and learned energies."""

import dataclasses
import functools
import pathlib
from collections.abc import Sequence
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from scipy.spatial.distance import jensenshannon

from equistein import plotting
from equistein.bridges import ForceField, from_openmm
from equistein.diffusion import match_torsions
from equistein.energies import KnownEnergy, LinearEnergy, PairWall
from equistein.features import Bonded, Concatenated, PairBasis, Torsions
from equistein.groups import Molecule
from equistein.metrics import free_energy, FreeEnergy, thermal_averages, virial
from equistein.models import for_data, LinearSettings
from equistein.runs import Metric, Outcome, seed_outcome
from equistein.samplers import HMC, ParallelTempering, run, Samples
from equistein.training import fit_linear
from experiments._engine import (
    AbstractConfig,
    Entry,
    Experiment,
    Figure,
    Shown,
    Trial,
)
from experiments._figures import rows
from experiments._metrics import METRICS

_PDB = pathlib.Path(__file__).parents[1] / "benchmarks" / "alanine-dipeptide.pdb"
_TORSIONS = Torsions([(4, 6, 8, 14), (6, 8, 14, 16)])  # phi and psi
_SPREAD = 0.001  # nm, of the starts about the conformer of the file
_EDGES = np.linspace(-np.pi, np.pi, 37)
_LEFT = 2.2  # radians: phi from 0 to here is the basin of left-handed helices
_EXTENDED = 2.0  # radians: psi beyond, and below -2.6, is C5 where phi < -2
_HELD_OUT = 1_000


@dataclasses.dataclass(frozen=True, kw_only=True)
class AlanineDipeptideConfig(AbstractConfig):
    """Settings of `alanine-dipeptide`.

    Attributes:
        kelvin: The temperature in K.
        hottest: That of the ladder's other end.
        num_temperatures: The temperatures of the ladder, evenly in their logarithms.
        num_chains: The number of ladders.
        num_leapfrogs: The steps of a trajectory.
        num_warm_up: Steps before the first sample, in which step sizes adapt.
        num_rounds: Samples of each chain.
        every: The steps between two of them.
        num_gaussians: Of the distances of each two atoms, in the learned energy.
        num_frames: Frames that it is learned from.
        num_samples: Samples of a learned energy, by tempering.
    """

    num_seeds: int = 1
    kelvin: float = 300.0
    hottest: float = 1_070.0
    num_temperatures: int = 8
    num_chains: int = 20
    num_leapfrogs: int = 16
    num_warm_up: int = 400
    num_rounds: int = 400
    every: int = 4
    num_gaussians: int = 5
    num_frames: int = 6_000
    num_samples: int = 6_000

    several: ClassVar[Sequence[str]] = ("num_temperatures", "num_chains")


@functools.cache
def molecule(kelvin: float) -> tuple[ForceField, np.ndarray, Molecule]:
    """Return the density of alanine dipeptide in vacuum, a conformer, and its bonds."""
    from openmm import app  # type: ignore

    pdb = app.PDBFile(str(_PDB))
    system = app.ForceField("amber14-all.xml").createSystem(
        pdb.topology, nonbondedMethod=app.NoCutoff, constraints=None, rigidWater=False
    )
    positions = np.array([[each.x, each.y, each.z] for each in pdb.positions])
    density = from_openmm(system, kelvin, reference=positions)
    return density, positions, Molecule(pdb.topology)


def sample(
    config: AlanineDipeptideConfig, trial: Trial, tempers: bool
) -> list[Samples]:
    """Return consecutive runs after the warm-up, of tempering or of chains alone."""
    density, positions, _ = molecule(config.kelvin)
    project = density.group.project
    chains = HMC(
        num_leapfrogs=config.num_leapfrogs, num_adapt=config.num_warm_up,
        project=project,
    )  # fmt: skip
    num, sampler = config.num_chains, chains
    if tempers:
        coldest = config.kelvin / config.hottest
        ladder = np.geomspace(1, coldest, config.num_temperatures)
        sampler = ParallelTempering(chains, ladder, num_adapt=config.num_warm_up)
    else:
        num *= config.num_temperatures  # as many evaluations
    noise = jr.normal(trial.key(0), (num, *positions.shape))
    start = jnp.asarray(positions, noise.dtype)[None] + _SPREAD * noise
    part = run(
        trial.key(1), sampler, density, start, num_steps=config.num_warm_up,
        check=False, progress=True,
    )  # fmt: skip
    parts, every = [], config.every
    for _ in range(config.num_rounds):
        part = run(
            trial.key(1), sampler, density, initial_state=part.state, num_steps=every,
            record_every=every, check=False,
        )  # fmt: skip
        parts.append(part)
    return parts


@functools.cache
def tempered(config: AlanineDipeptideConfig, seed: int) -> list[Samples]:
    """Return the runs of tempering, which the learned energies also need."""
    return sample(config, Trial("tempering", 0, seed), tempers=True)


def basins(free: FreeEnergy) -> dict[str, Any]:
    """Return differences of free energy, in kT, with their standard errors."""
    phi, psi = free.centers
    left = (phi > 0) & (phi < _LEFT)
    extended = (phi < -2) & ((psi > _EXTENDED) | (psi < -2.6))
    found = {}
    for name, sets in {
        "left_handed": (phi < 0, left),
        "c5": ((phi < 0) & ~extended, extended),
    }.items():
        value, error = free.difference(*sets)
        found |= {name: value, f"{name}_error": error}
    return found


def describe(config: AlanineDipeptideConfig, parts: list[Samples]) -> Outcome:
    """Return free energies, and how the run went."""
    density = molecule(config.kelvin)[0]
    free = free_energy(parts, _TORSIONS.angles, _EDGES)
    points = jnp.concatenate([part.particles for part in parts])
    numbers = basins(free) | {
        "virial": virial(density, points),
        "acceptance": np.mean([part.history["acceptance"][-1] for part in parts]),
        "evaluations": config.num_chains * int(parts[-1].history["evaluations"][-1]),
    }
    if "barrier" in parts[-1].history:
        averages = thermal_averages(parts, [1.0])
        numbers |= {
            "heat_capacity": averages["heat_capacities"][0],
            "heat_capacity_error": averages["heat_capacity_errors"][0],
            "round_trips": parts[-1].summary["round_trips"].sum(),
        }
    else:
        numbers["evaluations"] *= config.num_temperatures
    phi = free_energy(parts, lambda point: _TORSIONS.angles(point)[0], _EDGES)
    arrays = {
        "probabilities": free.probabilities,
        "over_phi": np.stack([phi.values, phi.errors]),
    }
    return seed_outcome(numbers, points, arrays=arrays)


def learn(config: AlanineDipeptideConfig, trial: Trial, knows_forces: bool) -> Outcome:
    """Fit an energy to frames; compare its forces and torsions with those of these."""
    parts = tempered(config, trial.seed)
    frames = jnp.concatenate([part.particles for part in parts])
    order = jr.permutation(trial.key(2), len(frames))
    num = min(config.num_frames, len(frames) - min(_HELD_OUT, len(frames) // 2))
    data, others = frames[order[:num]], frames[order[num:][:_HELD_OUT]]
    density, _, group = molecule(config.kelvin)
    score = jax.jit(jax.vmap(jax.grad(density)))
    if knows_forces:  # functions of each two atoms, which few frames do not determine
        pairs = PairBasis(
            range(frames.shape[1]), np.asarray(frames), powers=(-1.0, -6.0, -12.0),
            num_gaussians=config.num_gaussians,
        )  # fmt: skip
        features = Concatenated(Bonded(group.bonds, group.atomic_numbers), pairs)
        gaps = np.subtract(pairs.most, pairs.least) / 10  # few frames lie beyond
        least, most = np.array(pairs.least) - gaps, np.array(pairs.most) + gaps
        wall = PairWall(pairs, tuple(least.tolist()), tuple(most.tolist()))
        energy = LinearEnergy(features, KnownEnergy(wall, group))
        fitted = fit_linear(trial.key(3), energy, data, forces=score(data))
        fitted = match_torsions(trial.key(4), fitted, data, group)
    else:
        model = for_data(trial.key(3), group, data, settings=LinearSettings())
        fitted = model.fit(trial.key(3), data)
    true, learned = score(others), jax.vmap(jax.grad(fitted.log_density))(others)
    numbers = {"force_error": jnp.linalg.norm(learned - true) / jnp.linalg.norm(true)}
    points = fitted.sample(trial.key(5), config.num_samples)
    found, known = torsion_map(points), torsion_map(frames)
    sides = [(found.sum(axis), known.sum(axis)) for axis in (1, 0)]  # phi and psi
    numbers["torsions"] = np.mean([jensenshannon(*side) ** 2 for side in sides])
    return seed_outcome(numbers, points, arrays={"probabilities": found})


def torsion_map(points: Any) -> np.ndarray:
    """Return the fraction of the points in each bin of phi and psi."""
    angles = np.asarray(jax.vmap(_TORSIONS.angles)(points))
    return np.histogramdd(angles, [_EDGES, _EDGES])[0] / len(angles)


def entries(config: AlanineDipeptideConfig) -> list[Entry]:
    """Return tempering, chains alone, and learned energies."""
    return [
        Entry(
            "tempering", lambda trial: describe(config, tempered(config, trial.seed)),
            f"Ladders of HMC up to {config.hottest:.0f} K.", trains=True,
        ),
        Entry(
            "hmc", lambda trial: describe(config, sample(config, trial, tempers=False)),
            "Chains alone, as many as tempering has at all temperatures.", trains=True,
        ),
        Entry(
            "linear", lambda trial: learn(config, trial, knows_forces=False),
            f"Bonds and distances, fitted to {config.num_frames} frames.", trains=True,
        ),
        Entry(
            "linear-forces", lambda trial: learn(config, trial, knows_forces=True),
            "Functions of each two atoms within a wall, fitted to all forces, too.",
            trains=True,
        ),
    ]  # fmt: skip


def _draw_maps(config: Any, shown: Shown) -> Any | None:
    """Draw the density of phi and psi of each first seed."""
    found = rows(shown, lambda outcome: outcome.arrays["probabilities"])
    columns = {k: [(each[:36].T, None, "density")] for k, each in found.items()}
    return plotting.planar_energies(columns, ["psi over phi"], np.pi, np.pi)


def _draw_curves(config: Any, shown: Shown) -> Any | None:
    """Draw the free energy over phi, of each first seed."""
    found = rows(shown, lambda outcome: outcome.arrays.get("over_phi"))
    centers = np.degrees(_EDGES[:-1] + _EDGES[1:]) / 2
    series = {label: (centers, *each[:2]) for label, each in found.items()}
    if not series:
        return None
    return plotting.error_bars(series, "free energy / kT", x_label="phi / degrees")


_NEW = {
    "left_handed": Metric(
        "free energy of 0 < phi < 2.2 over that of phi < 0", "", "kT"
    ),
    "left_handed_error": Metric("standard error of the first", "", "kT"),
    "c5": Metric("free energy of C5 over the rest of phi < 0", "", "kT"),
    "c5_error": Metric("standard error of that of C5", "", "kT"),
    "virial": Metric("mean of -x . grad log p, exactly 63"),
    "heat_capacity": Metric("heat capacity of the potential energy", "", "k"),
    "heat_capacity_error": Metric("its standard error", "", "k"),
    "force_error": Metric("relative error of the force on held-out frames", "lower"),
    "torsions": Metric("Jensen-Shannon divergence of phi and psi, the mean", "lower"),
}
ALANINE_DIPEPTIDE = Experiment(
    name="alanine-dipeptide",
    figure="beyond the paper",
    headlines=("left_handed", "left_handed_error", "c5", "force_error", "torsions"),
    summary="alanine dipeptide by a force field of OpenMM: free energies, and energies "
    "learned from its frames",
    presets={
        "smoke": AlanineDipeptideConfig(
            num_temperatures=2, num_chains=4, num_leapfrogs=2, num_warm_up=8,
            num_rounds=24, every=1, num_gaussians=1, num_frames=64, num_samples=8,
        ),
        "quick": AlanineDipeptideConfig(),
        "paper": AlanineDipeptideConfig(num_seeds=5, num_rounds=2_000, num_chains=32),
    },
    entries=entries,
    needs={"openmm": "openmm"},
    metrics=METRICS | _NEW,
    figures=(
        Figure(
            "maps", _draw_maps, "The square root of the density over phi and psi, from "
            "-180 to 180 degrees each."
        ),
        Figure("over-phi", _draw_curves, "Free energy over phi, with standard errors."),
    ),
)  # fmt: skip
