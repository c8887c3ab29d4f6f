"""The settings of sampling a particle system."""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float

from equistein.data import published_clouds
from equistein.metrics import (
    geometric_wasserstein,
    pair_distances,
    proportions,
    total_variation,
    virial,
    wasserstein_1d,
)
from equistein.targets import AbstractParticleSystem, DoubleWell, LennardJones, Minima
from experiments._engine import AbstractConfig
from experiments._types import Particles, Scalar


@dataclasses.dataclass(frozen=True, kw_only=True)
class SystemConfig(AbstractConfig):
    """Settings of `particle-sampling`.

    Attributes:
        system: What is sampled; other defaults depend on it.
        samplers: Which are run, by the names of the report.
        num_particles: The number of particles.
        num_steps: Evaluations of the score, a particle, in the final run.
        budgets: Smaller numbers of evaluations, for the curves.
        pair_budget: The largest number for the samplers that sum over all pairs.
        num_reference: The number of reference samples.
        num_geometric: The number of clouds in the geometric distance.
        stein_step: The step of `equivariant` along the Stein force; 0 for none.
        noise: The Langevin step of `equivariant`, and of `langevin` before it cools; 0
            for none.
        start_inverse_temperature: The first inverse temperature, at most 1.
        annealed_fraction: The fraction of the steps that anneal, at most 1.
        corrected_fraction: That of the evaluations that `equivariant` ends with MALA.
        num_bins: The centers of its features, a smooth histogram of distances.
        bin_width: The width of a bin.
        reach: The last center.
        quiet_step_size: The step size of `quiet` and `vanilla`, in units of length.
        mala_step_size: The first step size of MALA.
        descent: Evaluations of annealed MALA, or of E-SVGD, from which the chains
            continue that do not come down from overlaps: BlackJAX's and those of
            tempering.
        hamiltonian_step_size: The step size from which their warm-ups begin.
        num_warmup: The steps of BlackJAX's warm-ups.
        trajectory: The steps of a trajectory of HMC and of microcanonical chains.
        inner: What moves the chains of tempering and of sequential Monte Carlo.
        num_ladders: The ladders of tempering; each is looked at many times.
        ess_fraction: The conditional effective fraction of sequential Monte Carlo.
        smc_moves: Its moves a temperature.
        score_clip: The longest score.
    """

    system: Literal["dw4", "lj13", "lj55"] = "dw4"
    samplers: tuple[str, ...] = (
        *("equivariant", "thinned", "quiet", "vanilla", "langevin", "mala"),
        *("hmc", "nuts", "mclmc", "tempering", "smc"),
    )
    num_particles: int = 1_000
    num_steps: int = 5_000
    budgets: tuple[int, ...] = (50, 100, 200, 400, 800, 1_600)
    pair_budget: int = 1_600
    num_reference: int = 40_000
    num_geometric: int = 1_000
    stein_step: float = 0.015
    noise: float = 0.01
    start_inverse_temperature: float = 0.1
    annealed_fraction: float = 0.9
    corrected_fraction: float = 0.25
    num_bins: int = 8
    bin_width: float = 1.0
    reach: float = 8.0
    quiet_step_size: float = 0.05
    mala_step_size: float = 0.01
    descent: int = 100
    hamiltonian_step_size: float = 0.15
    num_warmup: int = 300
    trajectory: int = 10
    inner: Literal["mala", "hmc"] = "mala"
    num_ladders: int = 100
    ess_fraction: float = 0.9
    smc_moves: int = 4
    score_clip: float = 100.0

    or_zero: ClassVar[Sequence[str]] = ("stein_step", "noise")
    fractions: ClassVar[Sequence[str]] = (
        "start_inverse_temperature",
        "annealed_fraction",
    )
    below_one: ClassVar[Sequence[str]] = ("corrected_fraction", "ess_fraction")

    def __post_init__(self):
        """Raise `ValueError` for settings that do not go together."""
        super().__post_init__()
        if self.num_particles < 2:
            raise ValueError(
                f"`num_particles` must be at least 2, but got {self.num_particles!r}."
            )
        if self.pair_budget < min((*self.budgets, self.num_steps)):
            raise ValueError(
                "`pair_budget` must be at least the smallest of `budgets`, but got "
                f"{self.pair_budget!r}."
            )


@dataclasses.dataclass(frozen=True, kw_only=True)
class System:
    """A particle system and what it is compared with.

    Attributes:
        name: The name of its files.
        target: Its density.
        limits: The range of distances in the total variation.
        energies: The range of energies shown.
        minima: Its minima, where they are few enough to be distinguished.
        published: The path of published samples in the data folder.
        start_evaluations: The evaluations that its starts take, a particle.
    """

    name: str
    target: AbstractParticleSystem
    limits: tuple[float, float]
    energies: tuple[float, float]
    minima: Callable[[], Minima] | None = None
    published: str | None = None
    start_evaluations: int = 0

    def floor(self, num: int, index: int, num_reference: int) -> Particles:
        """Return one of many draws of `num` of the samples of part 1."""
        exact = reference(self, num_reference, 1)
        chosen = np.random.default_rng(index).choice(len(exact), num, replace=False)
        return exact[chosen]

    def published_samples(self) -> Float[Array, "n *shape"] | None:
        """Return the published samples, where they are available."""
        if self.published is None:
            return None
        shape = self.target.num_particles, self.target.dim
        clouds = published_clouds(self.published, *shape)
        return None if clouds is None else jnp.asarray(clouds)

    def energy(self, points: Particles) -> Float[Array, " n"]:
        """Return the energy of each configuration."""
        return jax.vmap(lambda x: -self.target.log_density(x))(points)

    def quality(
        self, exact: Float[Array, "exact *shape"], points: Particles
    ) -> dict[str, Scalar]:
        """Return the two distances to exact samples that the curves show."""
        return _quality(self, exact, points)

    def metrics(
        self, exact: Float[Array, "exact *shape"], points: Particles, num_geometric: int
    ) -> dict[str, Any]:
        """Return all metrics of some particles.

        Args:
            exact: Exact samples.
            points: The particles.
            num_geometric: The number of clouds in the geometric distance.
        """
        numbers = self._distance_metrics(exact, points, num_geometric) | {
            "mean_energy": jnp.mean(self.energy(points)),
            "virial": virial(self.target.log_density, points),
        }
        if self.minima is not None:
            minima = self.minima()
            states = self.target.states(points, minima)
            held = proportions(states, len(minima.energies))
            numbers |= {f"state_{i + 1}": part for i, part in enumerate(held)}
        published = self.published_samples()
        if published is not None:
            few = min(num_geometric, len(exact))
            against = self._distance_metrics(published, points, few)
            for name in ("energy_w2", "geometric_w2"):
                numbers[f"{name}_published"] = against[name]
        return numbers

    def _distance_metrics(
        self, exact: Array, points: Particles, num_geometric: int
    ) -> dict[str, Any]:
        few = min(num_geometric, len(points), len(exact))
        geometric = geometric_wasserstein(points[:few], exact[:few], self.target.group)
        return self.quality(exact, points) | {"geometric_w2": geometric.value}


@functools.lru_cache(4)
def reference(system: System, num: int, part: int) -> Float[Array, "n *shape"]:
    """Return samples by parallel tempering, from the cache if they are there.

    Args:
        system: The system.
        num: How many.
        part: Which independent set: 0 to compare with, 1 for the floor.
    """
    return system.target.reference(num, part)


@eqx.filter_jit
def _quality(system: System, exact: Array, points: Array) -> dict[str, Scalar]:
    energies = system.energy(points), system.energy(exact)
    distances = pair_distances(points), pair_distances(exact)
    return {
        "energy_w2": wasserstein_1d(*energies, order=2),
        "distance_tv": total_variation(*distances, system.limits),
    }


@functools.cache
def _minima() -> Minima:
    return DoubleWell().minima(jr.key(0))


DW4_SYSTEM = System(
    name="dw4",
    target=DoubleWell(),
    limits=(1.0, 8.0),
    energies=(-26.0, -14.0),
    minima=_minima,
)
LJ13_SYSTEM = System(
    name="lj13",
    target=LennardJones(),
    limits=(0.5, 5.0),
    energies=(-70.0, -10.0),
    published="lj13/test_split_LJ13-1000.npy",
)
LJ55_SYSTEM = System(
    name="lj55",
    target=LennardJones(55),
    limits=(0.5, 8.0),
    energies=(-380.0, -260.0),
    start_evaluations=50,
)
SYSTEMS = {system.name: system for system in (DW4_SYSTEM, LJ13_SYSTEM, LJ55_SYSTEM)}
