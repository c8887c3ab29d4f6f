"""The Lennard-Jones cluster LJ-13 and its kin."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from equistein._types import Point, Scalar
from equistein.targets._particle_system import AbstractParticleSystem

_CORE = 0.4  # of the distance of the pair minimum


class LennardJones(AbstractParticleSystem):
    r"""Particles with a Lennard-Jones potential between each pair, in a harmonic trap.

    $$E(x) = \frac1\tau \Bigl( f \sum_{i<j} \bigl[ (r_m/d_{ij})^{12}
      - 2 (r_m/d_{ij})^6 \bigr] + \tfrac\omega2 \sum_i |x_i - \bar x|^2 \Bigr)$$

    The pair energy has its minimum $-f$ at $r_m$. With its defaults it is LJ-13 as the
    literature on neural samplers has it: their sum runs over ordered pairs, which is
    $f = 2$; the textbook's cluster has $f = 1$. Unnormalized; everything lives on the
    subspace whose center of mass is the origin. Below $0.4\, r_m$, where the pair
    energy is above $59\,000 f$, it is continued linearly, so that it and its gradient
    stay finite where particles meet.

    Args:
        num_particles: The number of particles, all alike.
        dim: The dimension of space.
        pair_factor: The factor $f$ of the pair energy.
        minimum: The distance $r_m$ of the pair minimum.
        trap: The strength $\omega$ of the trap.
        temperature: The temperature $\tau$.

    Raises:
        ValueError: If an argument is out of range.

    References:
        Köhler, Klein and Noé (2020), Equivariant Flows, section 5.1; Akhound-Sadegh et
        al. (2024), Iterated Denoising Energy Matching, for $f = 2$.
    """

    num_particles: int
    dim: int
    pair_factor: float
    minimum: float
    trap: float
    temperature: float

    def __init__(
        self,
        num_particles: int = 13,
        dim: int = 3,
        *,
        pair_factor: float = 2.0,
        minimum: float = 1.0,
        trap: float = 1.0,
        temperature: float = 1.0,
    ):
        positive = {
            "pair_factor": pair_factor,
            "minimum": minimum,
            "trap": trap,
            "temperature": temperature,
        }
        if (
            num_particles < 2
            or dim < 1
            or not all(value > 0 for value in positive.values())
        ):
            raise ValueError(
                "LennardJones needs `num_particles` >= 2, `dim` >= 1 and positive "
                "`pair_factor`, `minimum`, `trap` (or the particles fly apart) and "
                f"`temperature`, but got num_particles={num_particles!r}, dim={dim!r}, "
                + ", ".join(f"{name}={value!r}" for name, value in positive.items())
                + "."
            )
        self.num_particles = int(num_particles)
        self.dim = int(dim)
        self.pair_factor = float(pair_factor)
        self.minimum = float(minimum)
        self.trap = float(trap)
        self.temperature = float(temperature)

    @property
    def reach(self) -> float:
        return self.minimum * self.num_particles ** (1 / self.dim) / 2

    @property
    def hottest(self) -> float:
        return 0.5

    @property
    def relaxation(self) -> int:
        return 200

    def log_density(self, point: Point) -> Scalar:
        pairs = jnp.sum(self._pair_energy(self.distances(point)))
        gaps = point - jnp.mean(point, axis=0, keepdims=True)
        energy = self.pair_factor * pairs + self.trap / 2 * jnp.sum(gaps**2)
        return -energy / self.temperature

    def _pair_energy(self, distances: Float[Array, " pair"]) -> Float[Array, " pair"]:
        ratio = distances / self.minimum
        sixth = jnp.maximum(ratio, _CORE) ** -6
        core = _CORE**-6
        slope = 12 * (core - core**2) / _CORE
        return sixth**2 - 2 * sixth + slope * jnp.minimum(ratio - _CORE, 0)
