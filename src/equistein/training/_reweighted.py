"""Chains with weights that follow the energy: exact in distribution."""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float

from equistein._gate import gate
from equistein._numbers import check_integers, check_positive
from equistein._types import Key, Particles
from equistein.energies import AbstractEnergy
from equistein.samplers import (
    AbstractReference,
    AbstractSampler,
    advance,
    systematic_resampling,
)
from equistein.training._batch import Batch
from equistein.training._contrastive_divergence import (
    AbstractNegatives,
    check_probability,
    check_start,
    Drawn,
    movement_info,
    where_rows,
)

_FRESH = 4  # samples of the reference for each chain


class ReweightedState(eqx.Module):
    """What the next batch needs."""

    particles: Particles
    log_weights: Float[Array, " particle"]  # of weights that sum to 1
    values: Float[Array, " particle"]  # log densities under the last batch's energy


@gate
class Reweighted(AbstractNegatives):
    r"""Chains that carry weights from batch to batch, by Jarzynski's equality.

    A batch that finds the energy moved from $E$ to $E'$ multiplies the weight of each
    chain by $e^{E(x) - E'(x)}$, resamples the chains where their effective fraction is
    below `ess_fraction`, and moves all by a sampler that leaves $e^{-E'}$ invariant.
    They begin as exact samples of a reference. Then chains with their weights are
    samples of the energy in every batch, however few steps they take and however far
    its modes are apart: training is itself the annealing. The negatives are chains
    chosen by their weights.

    What is learned are the weights of modes as well as their shapes. Errors of the
    weights are forgotten where chains restart: at fresh samples of the reference, four
    for each chain, chosen by importance. In many dimensions these find no mode: leave
    `reset_probability` out there, or take `Persistent`.

    Args:
        sampler: One that is exact, such as `MALA(step_size)`.
        reference: The density that chains begin as samples of, wider than the data,
            such as `Normal(center, scale, group)`.
        num_particles: The number of chains, and of negatives of a batch.
        num_steps: The sampler's steps in a batch.
        ess_fraction: The effective sample size, as a fraction of the chains, below
            which they are resampled.
        reset_probability: The chance of a chain to restart in a batch.

    References:
        Carbone, Hua, Coste and Vanden-Eijnden (2023), Efficient training of
        energy-based models using Jarzynski equality, algorithm 1.
    """

    sampler: AbstractSampler
    reference: AbstractReference
    _: dataclasses.KW_ONLY
    num_particles: int = 512
    num_steps: int = 10
    ess_fraction: float = eqx.field(default=0.5, converter=float)
    reset_probability: float = eqx.field(default=0.0, converter=float)

    def __check_init__(self):
        counts = {"num_particles": self.num_particles, "num_steps": self.num_steps}
        check_integers("Reweighted", **counts)
        check_positive("Reweighted", ess_fraction=self.ess_fraction)
        check_probability("Reweighted", reset_probability=self.reset_probability)

    def init(self, key: Key, energy: AbstractEnergy, data: Batch) -> ReweightedState:
        self.sampler.check_shape(data.points.shape[1:])
        particles = self.reference.sample(key, self.num_particles)
        check_start(energy, particles[:256])
        values = jax.vmap(self.reference.log_density)(particles)
        return ReweightedState(particles, jnp.zeros_like(values), values)

    def draw(self, key: Key, energy: AbstractEnergy, state: Any, batch: Batch) -> Drawn:
        choose_key, coin_key, reset_key, move_key, pick_key = jr.split(key, 5)
        values_now = jax.vmap(energy.log_density)
        before, values = state.particles, values_now(state.particles)
        log_weights = jax.nn.log_softmax(state.log_weights + values - state.values)
        fraction = 1 / (jnp.sum(jnp.exp(2 * log_weights)) * len(before))
        resample = fraction < self.ess_fraction
        chosen = systematic_resampling(choose_key, jnp.exp(log_weights))
        before = jnp.where(resample, before[chosen], before)
        even = jnp.full_like(log_weights, -jnp.log(len(before)))
        log_weights = jnp.where(resample, even, log_weights)
        if self.reset_probability:
            resets = jr.bernoulli(coin_key, self.reset_probability, even.shape)
            fresh = self._fresh(reset_key, energy)
            before = where_rows(resets, fresh, before)
            log_weights = jax.nn.log_softmax(jnp.where(resets, even, log_weights))
        sampler = self.sampler.scaled(batch.step_scale)
        moved = sampler.init(before, energy.log_density)
        moved = advance(move_key, sampler, energy.log_density, moved, self.num_steps)
        after = moved.particles
        picked = systematic_resampling(pick_key, jnp.exp(log_weights))
        info = movement_info(energy, before, after) | {"ess_fraction": fraction}
        state = ReweightedState(after, log_weights, values_now(after))
        return after[picked], state, info

    def _fresh(self, key: Key, energy: AbstractEnergy) -> Particles:
        """Return as many samples of the reference as chains, chosen by importance."""
        draw_key, choose_key = jr.split(key)
        points = self.reference.sample(draw_key, _FRESH * self.num_particles)
        ratios = jax.vmap(
            lambda x: energy.log_density(x) - self.reference.log_density(x)
        )(points)
        chosen = systematic_resampling(choose_key, jax.nn.softmax(ratios))
        return points[chosen[::_FRESH]]
