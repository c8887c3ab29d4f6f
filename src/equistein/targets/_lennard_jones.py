"""The Lennard-Jones clusters: LJ-13, LJ-38, LJ-55 and their variants."""

import math

import equinox as eqx
import jax.numpy as jnp

from equistein._arrays import as_keys
from equistein._gate import gate
from equistein._types import AnyKey, Key, Particles, Point, Scalar
from equistein.targets._pair_sum import pair_sum, Squares
from equistein.targets._particle_system import AbstractParticleSystem
from equistein.targets._starts import centered_starts, settled_starts

_CORE = 0.4  # of the distance of the pair minimum
_WALL = 72.0  # the curvature of the pair minimum, in f / r_m^2
_LIQUID = 0.35  # a temperature in f, above all melting
_CLOSE = 0.7  # of that distance: nearer pairs are stuck
_FEW = 20  # particles that need not settle: chains take them apart
_SETTLING = 50  # steps of the descent


@gate
class LennardJones(AbstractParticleSystem):
    r"""Particles with a Lennard-Jones potential between each pair, held together.

    $$E(x) = \frac1\tau \Bigl( f \sum_{i<j} \bigl[ (r_m/d_{ij})^{12}
      - 2 (r_m/d_{ij})^6 \bigr] + \sum_i v(|x_i - \bar x|) \Bigr)$$

    The pair energy has its minimum $-f$ at $r_m$. What holds the particles is a trap,
    $v(r) = \tfrac\omega2 r^2$, or a container, $v(r) = 36 f \max(r - R, 0)^2 / r_m^2$:
    a wall at the radius R that is as stiff as a pair at its minimum, so that it asks
    for no smaller step of a gradient sampler, and which a particle enters by about
    $0.1\, r_m \sqrt{\tau / f}$. The literature's containers are hard walls around the
    center of mass; between $R$ and R plus that width nothing else differs.

    With its defaults it is LJ-13 as the literature on neural samplers has it: their sum
    runs over ordered pairs, which is $f = 2$; the textbook's cluster has $f = 1$.
    `LennardJones(55)` is their LJ-55. LJ-38 as in the literature on heat capacities, at
    a temperature T in units of the pair energy, is
    `LennardJones(38, pair_factor=1.0, container=2.25 * 2**(-1/6), temperature=T)`:
    lengths are in units of $r_m$, and $\sigma = 2^{-1/6} r_m$. Unnormalized; everything
    lives on the subspace whose center of mass is the origin. Below $0.4\, r_m$, where
    the pair energy is above $59\,000 f$, it is continued linearly in the squared
    distance, so that it and its gradient stay finite where particles meet.

    Args:
        num_particles: The number of particles, all alike.
        dim: The dimension of space.
        pair_factor: The factor $f$ of the pair energy.
        minimum: The distance $r_m$ of the pair minimum.
        trap: The strength $\omega$ of the trap; 1 if there is no container.
        container: The radius R of the container, instead of a trap.
        temperature: The temperature $\tau$.

    Raises:
        ValueError: If an argument is out of range, or there are a trap and a container.

    References:
        Köhler, Klein and Noé (2020), Equivariant Flows, section 5.1; Akhound-Sadegh et
        al. (2024), Iterated Denoising Energy Matching, for $f = 2$; Neirotti, Calvo,
        Freeman and Doll (2000), Phase changes in 38-atom Lennard-Jones clusters, for
        the container of $2.25\, \sigma$.
    """

    num_particles: int
    dim: int
    pair_factor: float
    minimum: float
    trap: float
    container: float | None
    temperature: float

    def __init__(
        self,
        num_particles: int = 13,
        dim: int = 3,
        *,
        pair_factor: float = 2.0,
        minimum: float = 1.0,
        trap: float | None = None,
        container: float | None = None,
        temperature: float = 1.0,
    ):
        if trap is not None and container is not None:
            raise ValueError(
                "LennardJones needs one of `trap` and `container`, but got "
                f"trap={trap!r} and container={container!r}."
            )
        positive = {
            "pair_factor": pair_factor,
            "minimum": minimum,
            "trap": 1.0 if trap is None else trap,
            "container": 1.0 if container is None else container,
            "temperature": temperature,
        }
        if (
            num_particles < 2
            or dim < 1
            or not all(0 < value < math.inf for value in positive.values())
        ):
            raise ValueError(
                "LennardJones needs `num_particles` >= 2, `dim` >= 1 and finite, "
                "positive `pair_factor`, `minimum`, `trap` or `container` (or the "
                "particles fly apart) and `temperature`, but got "
                f"num_particles={num_particles!r}, dim={dim!r}, "
                + ", ".join(f"{name}={value!r}" for name, value in positive.items())
                + "."
            )
        self.num_particles = int(num_particles)
        self.dim = int(dim)
        self.pair_factor = float(pair_factor)
        self.minimum = float(minimum)
        self.trap = float(positive["trap"]) if container is None else 0.0
        self.container = None if container is None else float(container)
        self.temperature = float(temperature)

    @property
    def name(self) -> str:
        return f"lj{self.num_particles}"

    @property
    def distance_limits(self) -> tuple[float, float]:
        size = (self.num_particles / 13) ** (1 / self.dim)
        return self.minimum / 2, 5 * self.minimum * size

    @property
    def num_reference(self) -> int:
        return 10_000 if self.num_particles <= _FEW else 4_000

    @property
    def has_few_states(self) -> bool:
        return False

    @property
    def reach(self) -> float:
        return self.minimum * self.num_particles ** (1 / self.dim) / 2

    @property
    def hottest(self) -> float:
        # There clusters in a container are liquid, whatever their size.
        return min(0.5, self.temperature / (_LIQUID * self.pair_factor))

    @property
    def relaxation(self) -> int:
        return 200 if self.num_particles <= _FEW else 600

    def start(self, key: AnyKey, num: int) -> Particles:
        """Draw clouds from a box, with the center of mass at the origin.

        Those of more than twenty particles overlap in too many places for a chain to
        take them apart, and are settled by 50 steps of gradient descent, as many
        evaluations: LJ-55 has about its mean energy then.
        """
        key = as_keys(key)
        if self.num_particles <= _FEW:
            return centered_starts(key, num, (self.num_particles, self.dim), self.reach)
        return _settled(self, key, num)

    def _log_density(self, point: Point) -> Scalar:
        pairs = self.pair_factor * pair_sum(self._pair_law, point)
        return -(pairs + self._holding(point)) / self.temperature

    def _holding(self, point: Point) -> Scalar:
        """Return the energy of the trap, or of the container."""
        gaps = point - jnp.mean(point, axis=0, keepdims=True)
        squares = jnp.sum(gaps**2, axis=1)
        if self.container is None:
            return self.trap / 2 * jnp.sum(squares)
        # The root is taken outside the container alone: it has no slope at its center.
        radius = self.container
        beyond = jnp.sqrt(jnp.maximum(squares, radius**2)) - radius
        stiffness = _WALL * self.pair_factor / self.minimum**2
        return stiffness / 2 * jnp.sum(beyond**2)

    def _pair_law(self, squares: Squares) -> tuple[Squares, Squares]:
        """Return $(r_m/d)^{12} - 2 (r_m/d)^6$ of $d^2$, and its slope in $d^2$."""
        edge, unit = (_CORE * self.minimum) ** 2, self.minimum**2
        inverse = unit / jnp.maximum(squares, edge)
        sixth = inverse * inverse * inverse
        core = _CORE**-6
        inside = jnp.minimum(squares - edge, 0) * (-6 * core * (core - 1) / edge)
        slope = -6 * sixth * (sixth - 1) * inverse / unit
        return sixth * (sixth - 2) + inside, slope


@eqx.filter_jit
def _settled(target: LennardJones, key: Key, num: int) -> Particles:
    length = target.minimum
    return settled_starts(
        key, target.log_density, num, (target.num_particles, target.dim), target.reach,
        num_steps=_SETTLING,
        step=2e-3 * length**2 * target.temperature / target.pair_factor,
        longest=0.1 * length, closest=_CLOSE * length,
    )  # fmt: skip
