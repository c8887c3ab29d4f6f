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
    epoch: Int[Array, ""]
    update: Int[Array, ""]


class BatchInfo(eqx.Module):
    """What one batch was like.

    Energies are means over the batch of data (positive) and the particles (negative);
    norms are root mean squares.
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

    The negatives are persistent particles moved by SVGD, each of which starts anew
    with some probability.

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
            jnp.zeros((), int),
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
        self, key: Key, state: TrainState, batch: Float[Array, "point *shape"]
    ) -> tuple[TrainState, BatchInfo]:
        reset_key, start_key, move_key = jr.split(key, 3)
        fresh = jr.bernoulli(
            reset_key, self.config.reset_probability, (len(state.particles),)
        )
        started = self.start.sample(start_key, len(state.particles))
        chosen = fresh.reshape(-1, *[1] * (started.ndim - 1))
        particles = jnp.where(chosen, started, state.particles)
        moved = self._negatives(move_key, state.energy, particles, batch)
        (_, info), gradient = self._loss(state.energy, batch, moved)
        weights = eqx.filter(state.energy, eqx.is_inexact_array)
        with jax.numpy_dtype_promotion("standard"):  # Optax mixes int and float
            updates, opt_state = self.optimizer.update(
                gradient, state.opt_state, weights
            )
        energy = eqx.apply_updates(state.energy, updates)
        update = state.update + 1
        decay = jnp.minimum(self.config.ema, update / (update + 9))
        average = _blend(decay, state.average, energy)
        shift = jnp.sqrt(jnp.sum((moved - particles) ** 2) / len(moved))
        info = eqx.tree_at(lambda i: i.displacement, info, shift)
        state = TrainState(energy, average, opt_state, moved, state.epoch, update)
        return state, info

    def _negatives(
        self,
        key: Key,
        energy: AbstractEnergy,
        particles: Particles,
        batch: Float[Array, "point *shape"],
    ) -> Particles:
        repellers = batch if self.config.repel else None
        state = self.sampler.init(particles, repellers=repellers)

        def step(i, state):
            step_key = jr.fold_in(key, i)
            return self.sampler.step(step_key, state, energy.log_density)[0]

        return jax.lax.fori_loop(0, self.config.num_steps, step, state).particles

    def _loss(
        self,
        energy: AbstractEnergy,
        positives: Float[Array, "point *shape"],
        negatives: Particles,
    ) -> tuple[tuple[Scalar, BatchInfo], PyTree]:
        @eqx.filter_value_and_grad(has_aux=True)
        def loss(energy):
            above = jax.vmap(energy)(positives)
            below = jax.vmap(energy)(negatives)
            positive, negative = jnp.mean(above), jnp.mean(below)
            square = jnp.mean(above**2) + jnp.mean(below**2)
            value = positive - negative + self.config.regularization * square
            largest = jnp.maximum(jnp.max(jnp.abs(above)), jnp.max(jnp.abs(below)))
            zero = jnp.zeros_like(value)
            return value, BatchInfo(value, positive, negative, largest, zero, zero)

        (value, info), gradient = loss(energy)
        scores = jax.vmap(jax.grad(energy))(negatives)
        norm = jnp.sqrt(jnp.sum(scores**2) / len(scores))
        return (value, eqx.tree_at(lambda i: i.score_norm, info, norm)), gradient


def _blend(decay: Scalar, average: AbstractEnergy, energy: AbstractEnergy):
    def blend(old, new):
        if not eqx.is_inexact_array(new):
            return new
        share = decay.astype(new.dtype)
        return share * old + (1 - share) * new

    return jax.tree.map(blend, average, energy)
