"""Clusters of metal atoms whose energies a calculator of ASE gives."""

import dataclasses
import functools
from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar

import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Float

from equistein.bridges import EnergyForces, from_ase
from equistein.runs import Outcome, seed_outcome
from equistein.samplers import MALA, ParallelTempering, run
from experiments._engine import (
    AbstractConfig,
    Entry,
    Experiment,
    Figure,
    Key,
    Particles,
    sampled,
    Stage,
)
from experiments._figures import histograms

_ELEMENTS = ("Cu", "Au")  # of those that the effective medium theory knows
_STEP = 1e-3  # the first one, in squared Angstrom
_SPREAD = 0.05  # Angstrom, of the starts about the icosahedron


@dataclasses.dataclass(frozen=True, kw_only=True)
class ClusterConfig(AbstractConfig):
    """Settings of `cluster`.

    Attributes:
        elements: The elements, Cu and Au.
        temperature: The temperature in K.
        container: The radius of the container in Angstrom.
        num_chains: The number of independent chains, or of ladders of tempering.
        num_warm_up: Steps before the first sample, in which step sizes adapt.
        num_rounds: Samples of each chain.
        every: The steps between two of them.
        ladder: The inverse temperatures of tempering, relative to the first.
    """

    num_seeds: int = 1
    elements: tuple[str, ...] = _ELEMENTS
    temperature: float = 600.0
    container: float = 5.0
    num_chains: int = 40
    num_warm_up: int = 150
    num_rounds: int = 25
    every: int = 10
    ladder: tuple[float, ...] = (1.0, 0.75, 0.55)

    several: ClassVar[Sequence[str]] = ("num_chains",)
    words: ClassVar[Mapping[str, Collection[str]]] = {"elements": _ELEMENTS}

    def __post_init__(self):
        """Raise `ValueError` for settings that do not go together."""
        super().__post_init__()
        if self.ladder[0] != 1 or np.any(np.diff(self.ladder) >= 0):
            raise ValueError(f"`ladder` must fall from 1, but got {self.ladder!r}.")


def entries(config: ClusterConfig) -> list[Entry]:
    """Return chains and tempering of each cluster."""
    samplers = {
        "mala": (
            lambda project: MALA(_STEP, num_adapt=config.num_warm_up, project=project),
            "Independent chains from the icosahedron, which stay about it unless they "
            "cross a barrier.",
        ),
        "tempering": (
            lambda project: ParallelTempering(
                MALA(_STEP, project=project), config.ladder,
                num_adapt=config.num_warm_up,
            ),
            "Ladders up to "
            f"{config.temperature / config.ladder[-1]:.0f} K; as many evaluations for "
            f"each of their {len(config.ladder)} temperatures.",
        ),
    }  # fmt: skip
    return [
        Entry(f"{name}-{element}13", _stage(config, element, make), note, trains=True)
        for element in config.elements
        for name, (make, note) in samplers.items()
    ]


def _stage(config: ClusterConfig, element: str, make: Any) -> Stage:
    """Return what runs a sampler from an icosahedron, and keeps some samples."""

    @functools.cache
    def cluster() -> tuple[Any, EnergyForces]:
        from ase.calculators.emt import EMT
        from ase.cluster import Icosahedron

        atoms = Icosahedron(element, 2)
        atoms.calc = EMT()
        return atoms, from_ase(
            atoms, temperature=config.temperature, container=config.container
        )

    def start(key: Key) -> Particles:
        noise = jr.normal(key, (config.num_chains, 13, 3))
        return jnp.asarray(cluster()[0].positions, noise.dtype)[None] + _SPREAD * noise

    def sample(key: Key, start: Particles) -> Outcome:
        density = cluster()[1]
        sampler = make(density.group.project)
        before = density.num_evaluations
        warm = run(
            key, sampler, density, start, num_steps=config.num_warm_up, progress=True
        )
        found = run(
            key, sampler, density, initial_state=warm.state, check=False,
            num_steps=config.num_rounds * config.every, record_every=config.every,
            keep=config.num_chains, progress=True,
        )  # fmt: skip
        clouds = found.history["particles"]
        energies = np.stack([density.energies(round_) for round_ in clouds])
        mean, error = mean_with_error(energies)
        centered = clouds - clouds.mean(axis=-2, keepdims=True)
        numbers = {
            "mean_energy": mean,
            "mean_energy_error": error,
            "acceptance": found.history["acceptance"].mean(),
            "largest_radius": np.linalg.norm(centered, axis=-1).max(),
            "evaluations": density.num_evaluations - before,
        }
        arrays = {f"energies_{element}": energies.ravel()}
        return seed_outcome(numbers, clouds.reshape(-1, 13, 3), arrays=arrays)

    return sampled(start, sample)


def mean_with_error(energies: Float[np.ndarray, "round chain"]) -> tuple[float, float]:
    """Return the mean and its standard error, of chains that are independent."""
    of_chains = energies.mean(axis=0)
    error = of_chains.std(ddof=1) / len(of_chains) ** 0.5
    return float(of_chains.mean()), float(error)


def compare(
    config: ClusterConfig, outcomes: dict[str, Outcome]
) -> Mapping[str, dict[str, np.ndarray]]:
    """Return how far chains are from tempering, in joint standard errors."""
    found = {}
    for element in config.elements:
        ours = outcomes.get(f"mala-{element}13")
        theirs = outcomes.get(f"tempering-{element}13")
        if ours is None or theirs is None:
            continue
        gap = np.abs(ours.metrics["mean_energy"] - theirs.metrics["mean_energy"])
        errors = [each.metrics["mean_energy_error"] for each in (ours, theirs)]
        found[f"mala-{element}13"] = {"gap_in_errors": gap / np.hypot(*errors)}
    return found


def _histogram(element: str) -> Figure:
    """Return the figure of the energies of one element."""
    return histograms(
        f"energies-{element.lower()}", f"energies_{element}",
        f"potential energy of {element}13 / eV", bins=40,
        line_of=f"tempering-{element}13",
        caption=f"Energies of {element}13 by each sampler, of all seeds together. The "
        "line is tempering's, over the histograms of both.",
    )  # fmt: skip


CLUSTER = Experiment(
    name="cluster",
    figure="beyond the paper",
    headlines=("gap_in_errors", "mean_energy", "acceptance"),
    summary="13 atoms of copper and of gold by a calculator of ASE: chains against "
    "tempering",
    presets={
        "smoke": ClusterConfig(
            elements=("Cu",), num_chains=2, num_warm_up=4, num_rounds=2, every=2,
            ladder=(1.0, 0.5),
        ),
        "quick": ClusterConfig(),
        "paper": ClusterConfig(num_seeds=3, num_warm_up=1_000, every=50),
    },
    entries=entries,
    needs={"ase": "ase"},
    compare=compare,
    figures=(
        *map(_histogram, _ELEMENTS),
    ),
)  # fmt: skip
