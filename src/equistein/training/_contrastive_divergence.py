"""Contrastive divergence: data against samples of the model, and how to draw them."""

import abc
import dataclasses
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from equistein._arrays import on_device
from equistein._check_arguments import check_arguments
from equistein._numbers import check_integers, check_positive
from equistein._types import Key, Particles, Scalar
from equistein.energies import AbstractEnergy, freeze, values_at
from equistein.samplers import (
    AbstractReference,
    AbstractSampler,
    advance,
    SVGD,
    systematic_resampling,
)
from equistein.training._data import Batch
from equistein.training._initial import AbstractInitial
from equistein.training._objectives import AbstractObjective, Loss

Drawn = tuple[Particles, Any, dict[str, Scalar]]
"""Negatives, the next state, and numbers to log."""

_SCORE_DIVISOR = 8
_LARGEST_ENERGY = 1e6  # where particles start, before anything is learned
_FRESH = 4  # samples of the reference for each chain


class AbstractNegatives(eqx.Module):
    """A way to draw samples of an energy that changes from batch to batch."""

    @abc.abstractmethod
    def init(self, key: Key, energy: AbstractEnergy, data: Batch) -> Any:
        """Return the state before the first batch, or raise `ValueError`."""

    @abc.abstractmethod
    def draw(self, key: Key, energy: AbstractEnergy, state: Any, batch: Batch) -> Drawn:
        """Return negatives, the next state, and numbers to log.

        The step sizes of the sampler are multiplied by `batch.step_scale`.
        """


@check_arguments
class ContrastiveDivergence(AbstractObjective[AbstractEnergy]):
    r"""The energy of data minus that of samples of the model.

    $$L = \mathbb E\, E(x^+) - \mathbb E\, E(x^-)
      + \lambda \bigl(\mathbb E\, E(x^+)^2 + \mathbb E\, E(x^-)^2\bigr)$$

    With the negatives held fixed, the gradient of the first two terms with respect to
    the weights estimates that of the mean negative log-likelihood of the data under
    $e^{-E}/Z$. The last term keeps energies small.

    Args:
        negatives: What draws $x^-$, such as `Persistent(sampler, initial)`.
        regularization: The weight $\lambda \ge 0$.

    References:
        Jaini, Holdijk and Welling (2021), Algorithm 1; Du and Mordatch (2019) for the
        regularization.
    """

    negatives: AbstractNegatives
    regularization: float = eqx.field(default=1e-3, converter=float)

    def __check_init__(self):
        weight = self.regularization
        check_positive("ContrastiveDivergence", zero=True, regularization=weight)

    def init(self, key: Key, energy: AbstractEnergy, data: Batch) -> Any:
        return self.negatives.init(key, energy, data)

    def loss(self, key: Key, energy: AbstractEnergy, state: Any, batch: Batch) -> Loss:
        negatives, state, info = self.negatives.draw(key, freeze(energy), state, batch)
        of_data = batch.evaluate(energy).energy
        of_negatives = jax.vmap(energy)(negatives)
        positive, negative = jnp.mean(of_data), jnp.mean(of_negatives)
        loss = positive - negative
        if self.regularization:
            squares = jnp.mean(of_data**2) + jnp.mean(of_negatives**2)
            loss += self.regularization * squares
        energies = jnp.concatenate([of_data, of_negatives])
        info |= {
            "positive_energy": positive,
            "negative_energy": negative,
            "largest_energy": jnp.max(jnp.abs(energies)),
        }
        return loss, state, info


def _movement_info(
    energy: AbstractEnergy, before: Particles, after: Particles
) -> dict[str, Scalar]:
    """Return root mean squares: of scores, and of how far particles moved."""
    # An eighth of the scores saves time, and is enough for the mean of an epoch.
    scores = jax.vmap(jax.grad(energy))(after[: -(-len(after) // _SCORE_DIVISOR)])
    return {
        "score_norm": jnp.sqrt(jnp.sum(scores**2) / len(scores)),
        "displacement": jnp.sqrt(jnp.sum((after - before) ** 2) / len(after)),
    }


def _check_start(energy: AbstractEnergy, particles: Particles) -> None:
    """Raise `ValueError` unless energies are moderate where particles start."""
    largest = np.max(np.abs(values_at(energy.log_density, particles)))
    if not largest <= _LARGEST_ENERGY:
        raise ValueError(
            f"Where particles start, around `data`, the energy reaches {largest:.3g}, "
            f"beyond {_LARGEST_ENERGY:g}, before anything is learned. Columns of very "
            "different scales do that: divide each by its standard deviation."
        )


def _where(rows: Bool[Array, " particle"], there: Array, otherwise: Array) -> Array:
    """Return particles of one array in some rows, and of another elsewhere."""
    return jnp.where(rows.reshape(-1, *[1] * (there.ndim - 1)), there, otherwise)


@check_arguments
class FromData(AbstractNegatives):
    """Chains that start at the data of each batch, and take some steps.

    Where they drift to is what the energy has wrong nearby; the weights of modes that
    are far apart stay what they were. Take `MALA(step_size)`, which is exact, or
    `Langevin(step_size)`.

    References:
        Hinton (2002), Training products of experts by minimizing contrastive
        divergence.
    """

    sampler: AbstractSampler
    num_steps: int = 20

    def __check_init__(self):
        check_integers("FromData", num_steps=self.num_steps)

    def init(self, key: Key, energy: AbstractEnergy, data: Batch) -> Any:
        self.sampler.check_shape(data.points.shape[1:])

    def draw(self, key: Key, energy: AbstractEnergy, state: Any, batch: Batch) -> Drawn:
        sampler = self.sampler.scale_steps(batch.step_scale)
        start = sampler.init(batch.points, energy.log_density)
        moved = advance(key, sampler, energy.log_density, start, self.num_steps)
        info = _movement_info(energy, batch.points, moved.particles)
        return moved.particles, state, info


class PersistentState(eqx.Module):
    """What the next batch needs: the particles, and the number of batches so far."""

    particles: Particles
    count: Int[Array, ""]


@check_arguments
class Persistent(AbstractNegatives):
    """Particles that a sampler moves on in every batch, from where they were.

    Before they move, each starts again with some probability: at a fresh start, or at a
    data point of the batch. Only the particles persist: the step number, momentum and
    adaptation of the sampler start again in every batch.

    Args:
        sampler: Such as `SVGD(kernel, optax.sgd(0.1), langevin=0.01)`.
        initial: Where particles start, such as `Box(data, group)`.
        num_particles: The number of negatives of a batch.
        buffer_size: The number of particles kept, of which each batch moves
            `num_particles`, chosen at random; None keeps and moves `num_particles`.
        num_steps: The sampler's steps in a batch, at most.
        reset_probability: The chance of a particle to start again in a batch.
        reset_to_data: The fraction of these that start at data points.
        tolerance: A batch's steps end once the root mean square update is below this,
            in the units of the points, Langevin noise included; None takes all.
        repel: Whether the data of the batch repels the particles; `SVGD` alone can.
        step_factor: A schedule, from the number of batches so far, of a factor on the
            step sizes; such as `optax.piecewise_constant_schedule`.

    References:
        Tieleman (2008), Training restricted Boltzmann machines using approximations to
        the likelihood gradient; Jaini, Holdijk and Welling (2021), Algorithm 1; Du and
        Mordatch (2019), section 3.2, for the buffer.
    """

    sampler: AbstractSampler
    initial: AbstractInitial
    _: dataclasses.KW_ONLY
    num_particles: int = 256
    buffer_size: int | None = None
    num_steps: int = 60
    reset_probability: float = eqx.field(default=0.05, converter=float)
    reset_to_data: float = eqx.field(default=0.0, converter=float)
    tolerance: float | None = None
    repel: bool = False
    step_factor: Callable[[Any], Any] | None = None

    def __check_init__(self):
        if self.repel and not isinstance(self.sampler, SVGD):
            raise ValueError(
                "Data can `repel` the particles of SVGD alone; those of "
                f"{type(self.sampler).__name__} are independent."
            )
        counts = {"num_particles": self.num_particles, "num_steps": self.num_steps}
        check_integers("Persistent", **counts)
        if self.buffer_size is not None:
            check_integers(
                "Persistent", self.num_particles, buffer_size=self.buffer_size
            )
        names = ("reset_probability", "reset_to_data")
        _check_probability("Persistent", **{n: getattr(self, n) for n in names})
        if self.tolerance is not None:
            check_positive("Persistent", tolerance=self.tolerance)

    def init(self, key: Key, energy: AbstractEnergy, data: Batch) -> PersistentState:
        self.sampler.check_shape(data.points.shape[1:])
        particles = self.initial.sample(key, self.buffer_size or self.num_particles)
        _check_start(energy, particles)
        return PersistentState(particles, on_device(np.zeros((), int)))

    def draw(self, key: Key, energy: AbstractEnergy, state: Any, batch: Batch) -> Drawn:
        kept, rows = state.particles, slice(None)
        if self.buffer_size is not None:
            pick_key, key = jr.split(key)
            rows = jr.permutation(pick_key, len(kept))[: self.num_particles]
        reset_key, move_key = jr.split(key)
        before = self._reset(reset_key, kept[rows], batch)
        scale = batch.step_scale
        if self.step_factor is not None:
            with jax.numpy_dtype_promotion("standard"):  # Optax mixes int and float
                factor = self.step_factor(state.count)
            scale = jnp.asarray(scale * factor, batch.points.dtype)
        sampler = self.sampler.scale_steps(scale)
        if self.repel:
            assert isinstance(sampler, SVGD)
            sampler = dataclasses.replace(sampler, repellers=batch.points)
        density = energy.log_density
        moved = advance(
            move_key, sampler, density, sampler.init(before, density), self.num_steps,
            self.tolerance,
        )  # fmt: skip
        after = moved.particles
        steps = {"sampler_steps": moved.step.astype(after.dtype)}
        info = _movement_info(energy, before, after) | steps
        return after, PersistentState(kept.at[rows].set(after), state.count + 1), info

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


def _check_probability(owner: str, **numbers: float) -> None:
    """Raise `ValueError` unless numbers are between 0 and 1."""
    for name, number in numbers.items():
        if not 0 <= number <= 1:
            raise ValueError(f"{owner} needs `{name}` between 0 and 1, not {number!r}.")


class ReweightedState(eqx.Module):
    """What the next batch needs."""

    particles: Particles
    log_weights: Float[Array, " particle"]  # unnormalized at first
    log_densities: Float[Array, " particle"]  # under the last batch's energy


@check_arguments
class Reweighted(AbstractNegatives):
    r"""Chains that carry weights from batch to batch, by Jarzynski's equality.

    A batch that finds the energy moved from $E$ to $E'$ multiplies the weight of each
    chain by $e^{E(x) - E'(x)}$, resamples the chains where their effective fraction is
    below `ess_fraction`, and moves all by a sampler that leaves $e^{-E'}$ invariant.
    They begin as exact samples of a reference, so that chains with their weights are
    samples of the energy in every batch, however few steps they take and however far
    its modes are apart. The negatives are chains chosen by their weights.

    Errors of the weights are forgotten where chains restart: at fresh samples of the
    reference, four for each chain, chosen by importance. In many dimensions these find
    no mode: leave `reset_probability` out there, or take `Persistent`.

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
        _check_probability("Reweighted", reset_probability=self.reset_probability)

    def init(self, key: Key, energy: AbstractEnergy, data: Batch) -> ReweightedState:
        self.sampler.check_shape(data.points.shape[1:])
        particles = self.reference.sample(key, self.num_particles)
        _check_start(energy, particles)
        values = jax.vmap(self.reference.log_density)(particles)
        return ReweightedState(particles, jnp.zeros_like(values), values)

    def draw(self, key: Key, energy: AbstractEnergy, state: Any, batch: Batch) -> Drawn:
        choose_key, coin_key, reset_key, move_key, pick_key = jr.split(key, 5)
        evaluate = jax.vmap(energy.log_density)
        before, values = state.particles, evaluate(state.particles)
        gained = values - state.log_densities
        log_weights = jax.nn.log_softmax(state.log_weights + gained)
        fraction = 1 / (jnp.sum(jnp.exp(2 * log_weights)) * len(before))
        resample = fraction < self.ess_fraction
        chosen = systematic_resampling(choose_key, jnp.exp(log_weights))
        before = jnp.where(resample, before[chosen], before)
        even = jnp.full_like(log_weights, -jnp.log(len(before)))
        log_weights = jnp.where(resample, even, log_weights)
        if self.reset_probability:
            resets = jr.bernoulli(coin_key, self.reset_probability, even.shape)
            fresh = self._fresh(reset_key, energy)
            before = _where(resets, fresh, before)
            log_weights = jax.nn.log_softmax(jnp.where(resets, even, log_weights))
        sampler = self.sampler.scale_steps(batch.step_scale)
        moved = sampler.init(before, energy.log_density)
        moved = advance(move_key, sampler, energy.log_density, moved, self.num_steps)
        after = moved.particles
        picked = systematic_resampling(pick_key, jnp.exp(log_weights))
        info = _movement_info(energy, before, after) | {"ess_fraction": fraction}
        state = ReweightedState(after, log_weights, evaluate(after))
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
