"""Particle systems to sample from their energy, and how to measure them."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float

from equistein._types import Particles, Scalar
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
        """Return the published samples, where they are at hand."""
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
        numbers = self._distances(exact, points, num_geometric) | {
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
            against = self._distances(published, points, few)
            for name in ("energy_w2", "geometric_w2"):
                numbers[f"{name}_published"] = against[name]
        return numbers

    def _distances(
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
