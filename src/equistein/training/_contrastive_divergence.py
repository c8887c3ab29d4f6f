"""Contrastive divergence with persistent particles: one compiled call an epoch."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import optax
from jaxtyping import Array, Float, Int, PyTree

from equistein._types import Key, Particles, Scalar
from equistein.energies import AbstractEnergy
from equistein.samplers import SVGD
from equistein.training._config import FitConfig
from equistein.training._start import Box


class TrainState(eqx.Module):
    """All that training carries from one epoch to the next."""

    energy: AbstractEnergy
    average: AbstractEnergy
    opt_state: PyTree
    particles: Particles
    age: Int[Array, " particle"]
    epoch: Int[Array, ""]


class BatchInfo(eqx.Module):
    """What one batch was like.

    Energies are means over the batch of data (positive) and the particles that have
    cooled (negative); norms are root mean squares.
    """

    loss: Scalar
    positive_energy: Scalar
    negative_energy: Scalar
    largest_energy: Scalar
    score_norm: Scalar
    displacement: Scalar


class ContrastiveDivergence(eqx.Module):
    r"""The training step of an energy based model.

    $$\nabla_\theta L = \mathbb E_{data} \nabla_\theta E(x^+)
      - \mathbb E_{p_\theta} \nabla_\theta E(x^-)
      + \lambda \nabla_\theta \mathbb E [E(x^+)^2 + E(x^-)^2]$$

    The negatives are persistent particles moved by SVGD. A particle that is reset
    starts hot, cools over `hot_steps`, as new samples do, and joins the loss when it
    has cooled.

    Args:
        config: The settings.
        sampler: What moves the negatives.
        optimizer: What moves the weights.
        start: Where particles start anew.
    """

    config: FitConfig
    sampler: SVGD
    optimizer: optax.GradientTransformation
    start: Box

    def init(self, key: Key, energy: AbstractEnergy) -> TrainState:
        weights = eqx.filter(energy, eqx.is_inexact_array)
        particles = self.start.sample(key, self.config.num_particles)
        return TrainState(
            energy,
            energy,
            self.optimizer.init(weights),
            particles,
            jnp.zeros(len(particles), int),
            jnp.zeros((), int),
        )

    @eqx.filter_jit
    def epoch(
        self, key: Key, state: TrainState, data: Particles
    ) -> tuple[TrainState, BatchInfo]:
        """Pass over the data once, in random order; return the info of each batch."""
        key = jr.fold_in(key, state.epoch)
        order_key, batch_key = jr.split(key)
        size = min(self.config.batch_size, len(data))
        num_batches = len(data) // size
        order = jr.permutation(order_key, len(data))[: num_batches * size]
        batches = data[order.reshape(num_batches, size)]
        arrays, static = eqx.partition(state, eqx.is_array)

        def body(arrays, inputs):
            batch, key = inputs
            state, info = self._batch(key, eqx.combine(arrays, static), batch)
            return eqx.filter(state, eqx.is_array), info

        keys = jr.split(batch_key, num_batches)
        arrays, infos = jax.lax.scan(body, arrays, (batches, keys))
        state = eqx.combine(arrays, static)
        return eqx.tree_at(lambda s: s.epoch, state, state.epoch + 1), infos

    def _batch(
        self, key: Key, state: TrainState, batch: Particles
    ) -> tuple[TrainState, BatchInfo]:
        reset_key, start_key, move_key = jr.split(key, 3)
        fresh = jr.bernoulli(
            reset_key, self.config.reset_probability, (len(state.particles),)
        )
        started = self.start.sample(start_key, len(state.particles))
        chosen = fresh.reshape(-1, *[1] * (started.ndim - 1))
        particles = jnp.where(chosen, started, state.particles)
        age = jnp.where(fresh, 0, state.age)
        moved, age = self._negatives(move_key, state.energy, particles, age, batch)
        # If none has cooled yet, as at the very start, all of them count.
        cool = (age >= self.config.hot_steps).astype(moved.dtype)
        cool = jnp.where(jnp.any(cool > 0), cool, 1.0)
        (_, info), gradient = self._loss(state.energy, batch, moved, cool)
        weights = eqx.filter(state.energy, eqx.is_inexact_array)
        with jax.numpy_dtype_promotion("standard"):  # Optax mixes int and float
            updates, opt_state = self.optimizer.update(
                gradient, state.opt_state, weights
            )
        energy = eqx.apply_updates(state.energy, updates)
        average = _blend(self.config.ema, state.average, energy)
        shift = jnp.sqrt(jnp.sum((moved - particles) ** 2) / len(moved))
        info = eqx.tree_at(lambda i: i.displacement, info, shift)
        return TrainState(energy, average, opt_state, moved, age, state.epoch), info

    def _negatives(
        self,
        key: Key,
        energy: AbstractEnergy,
        particles: Particles,
        age: Int[Array, " particle"],
        batch: Particles,
    ) -> tuple[Particles, Int[Array, " particle"]]:
        repellers = batch if self.config.repel else None
        state = self.sampler.init(particles, repellers=repellers)
        state = eqx.tree_at(lambda s: s.born, state, -age)

        def step(i, state):
            step_key = jr.fold_in(key, i)
            return self.sampler.step(step_key, state, energy.log_density)[0]

        state = jax.lax.fori_loop(0, self.config.num_steps, step, state)
        return state.particles, age + self.config.num_steps

    def _loss(
        self,
        energy: AbstractEnergy,
        positives: Particles,
        negatives: Particles,
        weights: Float[Array, " particle"],
    ) -> tuple[tuple[Scalar, BatchInfo], PyTree]:
        @eqx.filter_value_and_grad(has_aux=True)
        def loss(energy):
            above = jax.vmap(energy)(positives)
            below = jax.vmap(energy)(negatives)
            share = weights / jnp.sum(weights)
            positive, negative = jnp.mean(above), jnp.sum(share * below)
            square = jnp.mean(above**2) + jnp.sum(share * below**2)
            value = positive - negative + self.config.regularization * square
            largest = jnp.maximum(jnp.max(jnp.abs(above)), jnp.max(jnp.abs(below)))
            zero = jnp.zeros_like(value)
            return value, BatchInfo(value, positive, negative, largest, zero, zero)

        (value, info), gradient = loss(energy)
        scores = jax.vmap(jax.grad(energy))(negatives)
        norm = jnp.sqrt(jnp.sum(scores**2) / len(scores))
        return (value, eqx.tree_at(lambda i: i.score_norm, info, norm)), gradient


def _blend(decay: float, average: AbstractEnergy, energy: AbstractEnergy):
    def blend(old, new):
        if not eqx.is_inexact_array(new):
            return new
        return decay * old + (1 - decay) * new

    return jax.tree.map(blend, average, energy)
