"""Particle systems with reference samples, and pair distances."""

import abc

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from equistein._gate import finite_gate
from equistein._types import Particles, Point, Scalar
from equistein.groups import PointCloud


class AbstractParticleDensity(eqx.Module):
    """A density of clouds of particles with reference samples to compare with."""

    num_particles: eqx.AbstractVar[int]
    dim: eqx.AbstractVar[int]

    @property
    @abc.abstractmethod
    def name(self) -> str:
        """A short name of the system, such as `dw4`."""

    @property
    @abc.abstractmethod
    def group(self) -> PointCloud:
        """The symmetry of the density."""

    @property
    @abc.abstractmethod
    def degrees_of_freedom(self) -> int:
        """The dimension of the subspace that the density lives on."""

    @property
    @abc.abstractmethod
    def distance_limits(self) -> tuple[float, float]:
        """The range of pair distances that a histogram of them covers."""

    @property
    @abc.abstractmethod
    def num_reference(self) -> int:
        """The number of reference samples to compare with."""

    @property
    @abc.abstractmethod
    def state_energies(self) -> tuple[float, ...]:
        """The energies of the known states, lowest first; none where they are many."""

    @abc.abstractmethod
    def log_density(self, point: Point) -> Scalar:
        """Return the log density of one point, perhaps up to a constant."""

    @abc.abstractmethod
    def reference(self, num: int, part: int) -> Particles:
        """Return the reference samples of one of several independent runs."""

    @abc.abstractmethod
    def known_states(self, points: Particles) -> Int[Array, " n"]:
        """Return the index of the known state that each point belongs to."""


@finite_gate
def pair_distances(points: Particles) -> Float[Array, "n pair"]:
    """Return the distance of every pair of particles of each cloud."""
    first, second = jnp.triu_indices(points.shape[1], k=1)
    gaps = points[:, first] - points[:, second]
    return jnp.sqrt(jnp.sum(gaps**2, axis=-1))
