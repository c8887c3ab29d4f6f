"""Persistent particles, which continue from batch to batch."""

import dataclasses
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Bool, Float, Int

from equistein._gate import gate
from equistein._numbers import check_integers, check_positive
from equistein._types import Key, Particles, Scalar
from equistein.energies import AbstractEnergy
from equistein.samplers import AbstractSampler, advance, SVGD
from equistein.training._batch import Batch
from equistein.training.initial._base import AbstractInitial
from equistein.training.negatives._base import (
    AbstractNegatives,
    displacement,
    score_norm,
)

_LARGEST_ENERGY = 1e6  # where particles start, before anything is learned


class PersistentState(eqx.Module):
    """What the next batch needs.

    Attributes:
        particles: The particles.
        count: The number of batches so far.
    """

    particles: Particles
    count: Int[Array, ""]


@gate
class Persistent(AbstractNegatives):
    """Particles that a sampler moves on in every batch, from where they were.

    Before they move, each starts again with some probability: at a fresh start, or at a
    data point of the batch.

    Args:
        sampler: Such as `SVGD(kernel, optax.sgd(0.1), langevin=0.01)`.
        initial: Where particles start, such as `Box(data, group)`.
        num_particles: The number of negatives of a batch.
        num_steps: The sampler's steps in a batch, at most.
        reset_probability: The chance of a particle to start again in a batch.
        reset_to_data: The fraction of these that start at data points.
        tolerance: A batch's steps end once the root mean square update is below this,
            in the units of the points; None takes all. Langevin noise counts.
        repel: Whether the data of the batch repels the particles; `SVGD` alone can.
        step_factor: What the sampler's steps are multiplied with, from the number of
            batches so far; such as `optax.piecewise_constant_schedule`.

    Raises:
        ValueError: If an argument is not what it should be.

    References:
        Tieleman (2008), Training restricted Boltzmann machines using approximations to
        the likelihood gradient; Jaini, Holdijk and Welling (2021), Algorithm 1.
    """

    sampler: AbstractSampler
    initial: AbstractInitial
    _: dataclasses.KW_ONLY
    num_particles: int = 256
    num_steps: int = 60
    reset_probability: float = eqx.field(default=0.05, converter=float)
    reset_to_data: float = eqx.field(default=0.0, converter=float)
    tolerance: float | None = None
    repel: bool = False
    step_factor: Callable[[Any], Any] | None = None

    def __check_init__(self):
        if not isinstance(self.sampler, AbstractSampler):
            raise ValueError(
                "Persistent needs `sampler`, one such as SVGD(kernel, optimizer), but "
                f"got {self.sampler!r}."
            )
        if not isinstance(self.initial, AbstractInitial):
            raise ValueError(
                "Persistent needs `initial`, such as Box(data, group), but got "
                f"{self.initial!r}."
            )
        if self.repel and not isinstance(self.sampler, SVGD):
            raise ValueError(
                "Data can `repel` the particles of SVGD alone; those of "
                f"{type(self.sampler).__name__} are independent."
            )
        counts = {"num_particles": self.num_particles, "num_steps": self.num_steps}
        check_integers("Persistent", **counts)
        for name in ("reset_probability", "reset_to_data"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(
                    f"Persistent needs `{name}` between 0 and 1, but got "
                    f"{getattr(self, name)!r}."
                )
        if self.tolerance is not None:
            check_positive("Persistent", tolerance=self.tolerance)

    def init(self, key: Key, energy: AbstractEnergy, data: Batch) -> PersistentState:
        return self.init_many(key, energy, data, self.num_particles)

    def init_many(
        self, key: Key, energy: AbstractEnergy, data: Batch, num: int
    ) -> PersistentState:
        """Return the state of any number of particles."""
        self.sampler.check_shape(data.points.shape[1:])
        particles = self.initial.sample(key, num)
        check_start(energy, particles[:256])
        return PersistentState(particles, jnp.zeros((), int))

    def draw(
        self, key: Key, energy: AbstractEnergy, state: PersistentState, batch: Batch
    ) -> tuple[Particles, PersistentState, dict[str, Scalar]]:
        reset_key, move_key = jr.split(key)
        before = self._reset(reset_key, state.particles, batch)
        scale = batch.step_scale
        if self.step_factor is not None:
            with jax.numpy_dtype_promotion("standard"):  # Optax mixes int and float
                factor = self.step_factor(state.count)
            scale *= jnp.asarray(factor, scale.dtype)
        sampler = self.sampler.scaled(scale)
        if self.repel:
            assert isinstance(sampler, SVGD)
            sampler = sampler.with_repellers(batch.points)
        density = energy.log_density
        moved = advance(
            move_key, sampler, density, sampler.init(before, density), self.num_steps,
            self.tolerance,
        )  # fmt: skip
        after = moved.particles
        info = {
            "score_norm": score_norm(energy, after),
            "displacement": displacement(before, after),
            "sampler_steps": moved.step.astype(after.dtype),
        }
        return after, PersistentState(after, state.count + 1), info

    def _reset(self, key: Key, particles: Particles, batch: Batch) -> Particles:
        """Let each particle start again with some probability."""
        coin_key, start_key, data_key, which_key = jr.split(key, 4)
        num = len(particles)
        fresh = self.initial.sample(start_key, num)
        if self.reset_to_data:
            at_data = jr.bernoulli(data_key, self.reset_to_data, (num,))
            rows = jr.randint(which_key, (num,), 0, len(batch.points))
            fresh = _where(at_data, batch.points[rows], fresh)
        coins = jr.bernoulli(coin_key, self.reset_probability, (num,))
        return _where(coins, fresh, particles)


def check_start(energy: AbstractEnergy, particles: Particles) -> None:
    """Raise unless energies are moderate where particles start.

    Raises:
        ValueError: If they are not, as with columns of very different scales.
    """
    largest = float(_largest_energy(energy, particles))
    if not largest <= _LARGEST_ENERGY:
        raise ValueError(
            f"Where particles start, around `data`, the energy reaches {largest:.3g}, "
            f"beyond {_LARGEST_ENERGY:g}, before anything is learned. Columns of very "
            "different scales do that: divide each by its standard deviation."
        )


@eqx.filter_jit
def _largest_energy(energy: AbstractEnergy, particles: Particles) -> Scalar:
    return jnp.max(jnp.abs(jax.vmap(energy)(particles)))


def _where(
    chosen: Bool[Array, " particle"],
    there: Float[Array, "particle *shape"],
    otherwise: Particles,
) -> Particles:
    return jnp.where(chosen.reshape(-1, *[1] * (there.ndim - 1)), there, otherwise)
