"""The Lennard-Jones clusters: LJ-13, LJ-38, LJ-55 and their variants."""

import functools
from collections.abc import Callable
from typing import TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Bool, Float

from equistein._arrays import as_keys
from equistein._check_arguments import check_arguments
from equistein._numbers import check_integers, check_positive
from equistein._types import AnyKey, Key, Particles, Point, Scalar
from equistein.features import pair_differences, pair_sum
from equistein.groups import PeriodicCloud
from equistein.targets._particle_system import AbstractParticleSystem, centered_starts

Squares: TypeAlias = Float[Array, "particle particle"]
PairEnergy: TypeAlias = Callable[[Squares], tuple[Squares, Squares]]
"""From squared distances to energies and their slopes, du / d(r^2)."""

_CORE = 0.4  # of the distance of the pair minimum
_WALL = 72.0  # the curvature of the pair minimum, in f / r_m^2
_LIQUID = 0.35  # a temperature in f, above all melting
_CLOSE = 0.7  # of that distance: nearer pairs are stuck
_FEW = 20  # particles that need not settle
_SETTLING = 50  # steps of the descent
_ROUNDS = 10  # of drawing again


@check_arguments
class LennardJones(AbstractParticleSystem):
    r"""Particles with a Lennard-Jones potential between each pair, held together.

    $$E(x) = \frac1\tau \Bigl( f \sum_{i<j} \bigl[ (r_m/d_{ij})^{12}
      - 2 (r_m/d_{ij})^6 \bigr] + \sum_i v(|x_i - \bar x|) \Bigr)$$

    The pair energy has its minimum $-f$ at $r_m$. The particles are held by a trap,
    $v(r) = \tfrac\omega2 r^2$, or a container, $v(r) = 36 f \max(r - R, 0)^2 / r_m^2$:
    a wall at the radius R as stiff as a pair at its minimum, which a particle enters by
    about $0.1\, r_m \sqrt{\tau / f}$, where the literature has hard walls.

    The defaults are LJ-13, and `LennardJones(55)` LJ-55, of the literature on neural
    samplers, which sums over ordered pairs: $f = 2$. LJ-38 of the literature on heat
    capacities, at a temperature T in units of the pair energy, is
    `LennardJones(38, pair_factor=1.0, container=2.25 * 2**(-1/6), temperature=T)`:
    lengths are in units of $r_m$, and $\sigma = 2^{-1/6} r_m$. Unnormalized, on the
    subspace whose center of mass is the origin. Below $0.4\, r_m$, where the pair
    energy is above $59\,000 f$, it is continued linearly in the squared distance, so
    that it and its gradient are finite.

    Args:
        num_particles: The number of particles, all alike.
        dim: The dimension of space.
        pair_factor: The factor $f$ of the pair energy.
        minimum: The distance $r_m$ of the pair minimum.
        trap: The strength $\omega$ of the trap; 1 if there is no container.
        container: The radius R of the container, instead of a trap.
        temperature: The temperature $\tau$.

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
        trap = 1.0 if trap is None else trap
        check_integers("LennardJones", least=2, num_particles=num_particles)
        check_integers("LennardJones", dim=dim)
        check_positive(
            "LennardJones", pair_factor=pair_factor, minimum=minimum, trap=trap,
            temperature=temperature, container=1.0 if container is None else container,
        )  # fmt: skip
        self.num_particles = int(num_particles)
        self.dim = int(dim)
        self.pair_factor = float(pair_factor)
        self.minimum = float(minimum)
        self.trap = float(trap) if container is None else 0.0
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
    def reach(self) -> float:
        return self.minimum * self.num_particles ** (1 / self.dim) / 2

    @property
    def hottest(self) -> float:
        # There clusters in a container are liquid, whatever their size is.
        return min(0.5, self.temperature / (_LIQUID * self.pair_factor))

    @property
    def relaxation(self) -> int:
        return 200 if self.num_particles <= _FEW else 600

    def start(self, key: AnyKey, num: int) -> Particles:
        """Draw clouds from a box, with the center of mass at the origin.

        With more than twenty particles, which overlap too much for a chain, they are
        settled by 50 steps of gradient descent.
        """
        key = as_keys(key)
        if self.num_particles <= _FEW:
            return centered_starts(key, num, self.shape, self.reach)
        return _settled(self, key, num)

    def _log_density(self, point: Point) -> Scalar:
        energy = functools.partial(pair_energy, minimum=self.minimum)
        pairs = self.pair_factor * sum_pairs(energy, None, point)
        return -(pairs + self._holding(point)) / self.temperature

    def _holding(self, point: Point) -> Scalar:
        gaps = point - jnp.mean(point, axis=0, keepdims=True)
        squares = jnp.sum(gaps**2, axis=1)
        if self.container is None:
            return self.trap / 2 * jnp.sum(squares)
        # The root is taken outside the container alone: it has no slope at its center.
        radius = self.container
        beyond = jnp.sqrt(jnp.maximum(squares, radius**2)) - radius
        stiffness = _WALL * self.pair_factor / self.minimum**2
        return stiffness / 2 * jnp.sum(beyond**2)


def pair_energy(squares: Squares, minimum: float) -> tuple[Squares, Squares]:
    """Return $(r_m/d)^{12} - 2 (r_m/d)^6$ of $d^2$, and its slope in $d^2$."""
    edge, unit = (_CORE * minimum) ** 2, minimum**2
    inverse = unit / jnp.maximum(squares, edge)
    sixth = inverse * inverse * inverse
    core = _CORE**-6
    inside = jnp.minimum(squares - edge, 0) * (-6 * core * (core - 1) / edge)
    slope = -6 * sixth * (sixth - 1) * inverse / unit
    return sixth * (sixth - 2) + inside, slope


@eqx.filter_jit
def _settled(target: LennardJones, key: Key, num: int) -> Particles:
    """Draw clouds from a box and push apart the particles that overlap."""
    # By gradient descent; clouds with particles that are stuck are drawn again.
    length = target.minimum
    step = 2e-3 * length**2 * target.temperature / target.pair_factor
    longest = 0.1 * length  # way of a particle in a step

    def settle(cloud):
        def descend(_, x):
            force = jax.grad(target.log_density)(x)
            size = jnp.sqrt(jnp.sum(force**2, axis=1, keepdims=True))
            return x + force * (longest / jnp.maximum(size, longest / step))

        return jax.lax.fori_loop(0, _SETTLING, descend, cloud)

    def stuck(clouds: Particles) -> Bool[Array, " cloud"]:
        squares = jax.vmap(lambda x: jnp.sum(pair_differences(x) ** 2, axis=1))(clouds)
        return ~(jnp.min(squares, axis=1) > (_CLOSE * length) ** 2)

    def draw(number):
        box_key = jr.fold_in(key, number)
        box = centered_starts(box_key, num, target.shape, target.reach)
        clouds = jax.vmap(settle)(box)
        return clouds - jnp.mean(clouds, axis=1, keepdims=True)

    def unfinished(carry):
        number, clouds = carry
        return (number < _ROUNDS) & jnp.any(stuck(clouds))

    def replace(carry):
        number, clouds = carry
        bad = stuck(clouds)[:, None, None]
        return number + 1, jnp.where(bad, draw(number), clouds)

    return jax.lax.while_loop(unfinished, replace, (1, draw(0)))[1]


@functools.partial(jax.custom_jvp, nondiff_argnums=(0, 1))
def sum_pairs(energy: PairEnergy, cloud: PeriodicCloud | None, point: Point) -> Scalar:
    r"""Return the energy of all pairs, $\sum_{i<j} u(|x_i - x_j|^2)$.

    Its gradient, $2 \sum_j u'(r_{ij}^2) (x_i - x_j)$, comes in the same pass, and can
    be differentiated again. `energy` must be finite at 1. With a `cloud` the nearest
    images are meant.
    """
    return pair_sum(energy, point, cloud)[0]


@sum_pairs.defjvp
def _push(
    energy: PairEnergy,
    cloud: PeriodicCloud | None,
    primals: tuple[Point],
    tangents: tuple[Point],
) -> tuple[Scalar, Scalar]:
    value, gradient = pair_sum(energy, primals[0], cloud)
    return value, jnp.sum(gradient * tangents[0])
