"""A particle system to sample from its energy, and how to measure it."""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float

from equistein._types import Particles, Scalar
from equistein.data import cached_array, published_clouds
from equistein.experiments.engine._checks import AbstractConfig
from equistein.metrics import (
    geometric_wasserstein,
    pair_distances,
    proportions,
    total_variation,
    virial,
    wasserstein_1d,
)
from equistein.targets import AbstractParticleSystem, Minima

_REFERENCE = 1  # the version of what makes reference samples


@dataclasses.dataclass(frozen=True, kw_only=True)
class SystemConfig(AbstractConfig):
    """Settings of `dw4-sampling` and `lj13-sampling`.

    Attributes:
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
        nuts_step_size: The step size of NUTS.
        score_clip: The longest score.
    """

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
    nuts_step_size: float = 0.15
    score_clip: float = 100.0

    or_zero: ClassVar[Sequence[str]] = ("stein_step", "noise")
    fractions: ClassVar[Sequence[str]] = ("corrected_fraction",)

    def __post_init__(self):
        """Raise `ValueError` for settings that do not go together."""
        super().__post_init__()
        for name in ("start_inverse_temperature", "annealed_fraction"):
            if getattr(self, name) > 1:
                raise ValueError(
                    f"`{name}` must be at most 1, but got {getattr(self, name)!r}."
                )
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
        minima: Its minima, where they are few enough to be told apart.
        published: The path of published samples in the data folder.
    """

    name: str
    target: AbstractParticleSystem
    limits: tuple[float, float]
    energies: tuple[float, float]
    minima: Callable[[], Minima] | None = None
    published: str | None = None


@functools.lru_cache(4)
def reference(system: System, num: int, part: int) -> Float[Array, "n *shape"]:
    """Return reference samples by parallel tempering, from the cache if they are there.

    Args:
        system: The system.
        num: How many.
        part: Which independent set: 0 to compare with, 1 for the floor.
    """
    target = system.target
    settings = {
        "version": _REFERENCE,
        "target": repr(target),
        "num": num,
        "part": part,
    }
    shape = (num, target.num_particles, target.dim)
    return jnp.asarray(
        cached_array(
            f"{system.name}-reference", settings, shape,
            lambda: np.asarray(target.sample(jr.key(1_000 + part), num)),
        )
    )  # fmt: skip


def quality(
    system: System, exact: Float[Array, "exact *shape"], points: Particles
) -> dict[str, Scalar]:
    """Return the two distances to exact samples that the curves show."""
    energy = jax.vmap(lambda x: -system.target.log_density(x))
    gap = wasserstein_1d(energy(points), energy(exact), order=2)
    distances = pair_distances(points), pair_distances(exact)
    return {
        "energy_w2": gap,
        "distance_tv": total_variation(*distances, system.limits),
    }


def measure(
    system: System, exact: Float[Array, "exact *shape"], points: Particles
) -> dict[str, float]:
    """Return them as numbers."""
    numbers = _compiled_quality(system, exact, points)
    return {name: float(value) for name, value in numbers.items()}


@eqx.filter_jit
def _compiled_quality(system, exact, points):
    return quality(system, exact, points)


def measure_all(
    config: SystemConfig,
    system: System,
    exact: Float[Array, "n *shape"],
    points: Particles,
) -> dict[str, float]:
    """Return all metrics of some particles."""
    target = system.target
    values = jax.vmap(lambda x: -target.log_density(x))(points)
    few = min(config.num_geometric, len(points), len(exact))
    numbers = measure(system, exact, points) | {
        "geometric_w2": geometric_wasserstein(
            points[:few], exact[:few], target.group
        ).value,
        "mean_energy": float(jnp.mean(values)),
        "virial": float(virial(target.log_density, points)),
    }
    if system.minima is not None:
        minima = system.minima()
        held = proportions(target.states(points, minima), len(minima.energies))
        numbers |= {f"state_{i + 1}": float(part) for i, part in enumerate(held)}
    published = _published(system)
    if published is not None:
        against = measure(system, published, points)
        numbers["energy_w2_published"] = against["energy_w2"]
        few = min(few, len(published))
        numbers["geometric_w2_published"] = geometric_wasserstein(
            points[:few], published[:few], target.group
        ).value
    return numbers


def _published(system: System) -> Float[Array, "n *shape"] | None:
    if system.published is None:
        return None
    clouds = published_clouds(
        system.published, system.target.num_particles, system.target.dim
    )
    return None if clouds is None else jnp.asarray(clouds)
