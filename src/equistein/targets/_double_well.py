"""The double-well system DW-4 and its variants."""

import jax.numpy as jnp

from equistein._check_arguments import check_arguments
from equistein._numbers import check_integers, check_positive
from equistein._types import Point, Scalar
from equistein.features import pair_differences
from equistein.targets._particle_system import AbstractParticleSystem


@check_arguments
class DoubleWell(AbstractParticleSystem):
    r"""Particles with a double-well potential between each pair.

    $$E(x) = \frac1\tau \sum_{i<j} a (d_{ij} - d_0) + b (d_{ij} - d_0)^2
      + c (d_{ij} - d_0)^4$$

    The defaults are DW-4 at temperature 1, each pair counted once (the paper's code
    counts it twice), with five distinct minima. Unnormalized, on the subspace whose
    center of mass is the origin.

    References:
        Köhler, Klein and Noé (2020), Equivariant Flows, section 5.1.
    """

    num_particles: int
    dim: int
    a: float
    b: float
    c: float
    d0: float
    temperature: float

    def __init__(
        self,
        num_particles: int = 4,
        dim: int = 2,
        *,
        a: float = 0.0,
        b: float = -4.0,
        c: float = 0.9,
        d0: float = 4.0,
        temperature: float = 1.0,
    ):
        check_integers("DoubleWell", least=2, num_particles=num_particles)
        check_integers("DoubleWell", dim=dim)
        check_positive("DoubleWell", c=c, temperature=temperature)
        self.num_particles = num_particles
        self.dim = dim
        self.a, self.b, self.c, self.d0 = float(a), float(b), float(c), float(d0)
        self.temperature = float(temperature)

    @property
    def name(self) -> str:
        return f"dw{self.num_particles}"

    @property
    def distance_limits(self) -> tuple[float, float]:
        return self.d0 / 4, 2 * self.d0

    @property
    def num_reference(self) -> int:
        return 40_000

    @property
    def has_few_states(self) -> bool:
        return self.num_particles <= 4

    @property
    def reach(self) -> float:
        return 1.25 * self.d0

    @property
    def hottest(self) -> float:
        return 0.1

    @property
    def relaxation(self) -> int:
        return 50

    def _log_density(self, point: Point) -> Scalar:
        squared = jnp.sum(pair_differences(point) ** 2, axis=-1)
        # Smooth where two particles coincide.
        distances = jnp.sqrt(squared + float(jnp.finfo(point.dtype).tiny) ** 0.5)
        y = distances - self.d0
        return -jnp.sum(self.a * y + self.b * y**2 + self.c * y**4) / self.temperature
