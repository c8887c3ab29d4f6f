"""The Lennard-Jones fluid: particles in a periodic cube."""

import functools
import math

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float

from equistein._arrays import as_keys
from equistein._check_arguments import check_arguments
from equistein._numbers import check_integers, check_positive
from equistein._types import AnyKey, Particles, Point, Scalar
from equistein.features import pair_sum
from equistein.groups import PeriodicCloud
from equistein.samplers import advance, HMC, visit
from equistein.targets._base import AbstractTarget
from equistein.targets._lennard_jones import pair_energy, Squares, sum_pairs

_MINIMUM = 2 ** (1 / 6)  # the distance of the pair minimum
_CHAINS = 8  # at most
_LEAPFROGS = 16
_STEP_SIZE = 0.02  # adapted
_RELAXATION = 25  # steps in which a chain forgets its energy


@check_arguments
class LennardJonesFluid(AbstractTarget):
    r"""Particles with a Lennard-Jones potential in a periodic cube.

    $$E(x) = \frac1T \sum_{i<j} u(r_{ij}), \qquad
      u(r) = 4 (r^{-12} - r^{-6}) \text{ for } r < r_c, \text{ else } 0$$

    in reduced units, where the energy $\epsilon$ and the length $\sigma$ of a pair are
    1, with distances to the nearest images. The potential is cut off, not shifted;
    below $.45\, \sigma$ it is continued linearly, as that of `LennardJones` is.

    `energy_and_pressure` adds the tail correction, what a fluid without order has
    beyond the cut-off:

    $$\frac UN = \frac1N \sum u + \tfrac83 \pi \rho
      \bigl[ \tfrac13 r_c^{-9} - r_c^{-3} \bigr], \qquad
      P = \rho T - \frac1{3V} \sum r u'(r) + \tfrac{16}3 \pi \rho^2
      \bigl[ \tfrac23 r_c^{-9} - r_c^{-3} \bigr]$$

    Args:
        num_particles: The number of particles.
        density: The number density $\rho$.
        temperature: The temperature T.
        cutoff: The distance $r_c$, at most half the side of the cube.

    References:
        Allen and Tildesley (2017), Computer Simulation of Liquids, section 2.8.
    """

    num_particles: int = 500
    density: float = 0.776
    temperature: float = 0.85
    cutoff: float = 3.0

    def __check_init__(self):
        owner = "LennardJonesFluid"
        check_integers(owner, least=2, num_particles=self.num_particles)
        check_positive(
            owner, density=self.density, temperature=self.temperature,
            cutoff=self.cutoff,
        )  # fmt: skip
        self.group.check_cutoff(owner, self.cutoff)

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.num_particles, 3)

    @property
    def side(self) -> float:
        """The side of the cube."""
        return (self.num_particles / self.density) ** (1 / 3)

    @property
    def group(self) -> PeriodicCloud:
        return PeriodicCloud((0,) * self.num_particles, (self.side,) * 3)

    @eqx.filter_jit
    def energy_and_pressure(
        self, points: Particles
    ) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
        """Return the energy a particle and the pressure, with the tail correction."""
        density, cutoff = self.density, self.cutoff
        energy = functools.partial(_cut_energy, cutoff)

        def virial(squares):  # r u'(r) = 2 r^2 du / d(r^2)
            values, slopes = energy(squares)
            return 2 * squares * slopes, values

        def of_one(point):
            return tuple(pair_sum(f, point, self.group)[0] for f in (energy, virial))

        energies, virials = jax.lax.map(of_one, points)
        ninth, third = cutoff**-9, cutoff**-3
        tail = 8 / 3 * math.pi * density * (ninth / 3 - third)
        pressure_tail = 16 / 3 * math.pi * density**2 * (2 / 3 * ninth - third)
        pressure = density * self.temperature - virials / (3 * self.group.volume)
        return energies / self.num_particles + tail, pressure + pressure_tail

    def sample(self, key: AnyKey, num: int, *, num_steps: int = 500) -> Particles:
        """Draw reference samples by Hamiltonian Monte Carlo.

        At most 8 chains forget their start over `num_steps` steps, then give a sample
        every 25 steps of 16 leapfrogs. Particles are wrapped.
        """
        key = as_keys(key)
        check_integers("`sample`", num=num)
        start_key, run_key, order_key = jr.split(key, 3)
        start = self.group.start(start_key, min(num, _CHAINS))
        # Chains are biased while step sizes adapt, and forget it in the second half.
        num_adapt, density = num_steps // 2, self.log_density
        chains = HMC(_STEP_SIZE, num_leapfrogs=_LEAPFROGS, num_adapt=num_adapt)
        state = eqx.filter_jit(chains.init)(start, density)
        until = state.step + (num_steps + _RELAXATION)
        state = advance(run_key, chains, density, state, until)
        rounds = -(-num // len(start))
        points = visit(run_key, chains, density, state, _RELAXATION, rounds)
        return jax.vmap(self.group.wrap)(jr.permutation(order_key, points)[:num])

    def _log_density(self, point: Point) -> Scalar:
        energy = functools.partial(_cut_energy, self.cutoff)
        return -sum_pairs(energy, self.group, point) / self.temperature


def _cut_energy(cutoff: float, squares: Squares) -> tuple[Squares, Squares]:
    values, slopes = pair_energy(squares, _MINIMUM)
    inside = squares < cutoff**2
    return jnp.where(inside, values, 0), jnp.where(inside, slopes, 0)
