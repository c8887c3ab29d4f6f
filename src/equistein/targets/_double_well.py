"""The double-well system DW-4 and its kin."""

import jax
import jax.numpy as jnp
import jax.random as jr

from equistein._types import Key, Particles, Point, Scalar
from equistein.features import SortedDistances
from equistein.groups import PointCloud
from equistein.targets._base import AbstractTarget, check_num
from equistein.targets._metropolis import reference_chains
from equistein.targets._minima import centred_starts, find_minima, Minima, relax

_REACH = 5.0


class DoubleWell(AbstractTarget):
    r"""Particles with a double-well potential between each pair.

    $$E(x) = \frac1\tau \sum_{i<j} a (d_{ij} - d_0) + b (d_{ij} - d_0)^2
      + c (d_{ij} - d_0)^4$$

    With its defaults it is DW-4 at temperature 1, each pair counted once (the paper's
    code counts it twice). Unnormalized; everything lives on the subspace whose centre
    of mass is the origin. DW-4 has five distinct minima.

    Args:
        num_particles: The number of particles, all alike.
        dim: The dimension of space.
        a: The slope of the pair energy.
        b: Its quadratic coefficient.
        c: Its quartic coefficient.
        d0: The distance at the barrier.
        temperature: The temperature $\tau$.

    Raises:
        ValueError: If an argument is out of range.

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
        if num_particles < 2 or dim < 1 or not c > 0 or not temperature > 0:
            raise ValueError(
                "DoubleWell needs `num_particles` >= 2, `dim` >= 1, `c` > 0 (or the "
                "particles fly apart) and `temperature` > 0, but got "
                f"num_particles={num_particles!r}, dim={dim!r}, c={c!r}, "
                f"temperature={temperature!r}."
            )
        self.num_particles = int(num_particles)
        self.dim = int(dim)
        self.a, self.b, self.c, self.d0 = float(a), float(b), float(c), float(d0)
        self.temperature = float(temperature)

    @property
    def group(self) -> PointCloud:
        return PointCloud((0,) * self.num_particles, self.dim)

    @property
    def features(self) -> SortedDistances:
        """The features that tell configurations apart up to the group."""
        return SortedDistances((0,) * self.num_particles)

    def log_density(self, point: Point) -> Scalar:
        first, second = jnp.triu_indices(self.num_particles, k=1)
        squared = jnp.sum((point[first] - point[second]) ** 2, axis=-1)
        # Smooth where two particles coincide.
        floor = float(jnp.finfo(point.dtype).tiny) ** 0.5
        y = jnp.sqrt(squared + floor) - self.d0
        return -jnp.sum(self.a * y + self.b * y**2 + self.c * y**4) / self.temperature

    def sample(self, key: Key, num: int, *, num_steps: int = 3_000) -> Particles:
        """Draw reference samples: the ends of `num` independent Markov chains.

        Args:
            key: The source of randomness.
            num: The number of samples, each from a chain of its own.
            num_steps: The length of a chain; the second half samples the target.
        """
        check_num(num)
        start_key, run_key = jr.split(key)
        start = self.start(start_key, num)
        points, _ = reference_chains(
            run_key, self.log_density, start, self.group,
            num_steps=num_steps, heating=0.02, jump=0.75 * self.d0,
        )  # fmt: skip
        return points

    def start(self, key: Key, num: int) -> Particles:
        """Draw points from the box [-5, 5) with the centre of mass at the origin."""
        shape = (self.num_particles, self.dim)
        return centred_starts(key, num, shape, _REACH)

    def minima(self, key: Key, num_starts: int = 512) -> Minima:
        """Find the distinct minima by relaxing from many starts.

        Args:
            key: The source of the starts.
            num_starts: How many; 512 finds all five of DW-4.
        """
        return find_minima(self.log_density, self.start(key, num_starts), self.features)

    def states(self, points: Particles, minima: Minima) -> jax.Array:
        """Return the index of the minimum that each point relaxes to."""
        ends = jax.vmap(self.features)(relax(self.log_density, points))
        gaps = jnp.max(jnp.abs(ends[:, None] - minima.features[None]), axis=-1)
        return jnp.argmin(gaps, axis=1)
