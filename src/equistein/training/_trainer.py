"""The training step, one compiled call an epoch, and how it updates the weights."""

import contextlib
import dataclasses
from collections.abc import Mapping
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
from jax.sharding import Mesh
from jaxtyping import Array, Int, PyTree, UInt32

from equistein._arrays import on_device
from equistein._check_arguments import check_arguments
from equistein._numbers import check_integers, check_positive
from equistein._sharding import shard_rows
from equistein._types import Key, Particles, Scalar
from equistein.energies import AbstractEnergy
from equistein.samplers import canonical_optimizer, shard_samplers
from equistein.training._data import Batch, Labels
from equistein.training._objectives import AbstractObjective

Precision = Literal["bfloat16", "tensorfloat32", "float32"]
"""How a GPU or a TPU may round the inputs of a matrix product."""

_LEARNING_RATE = 2e-3


@check_arguments
@dataclasses.dataclass(frozen=True)
class Optimization:
    """How the weights are updated, and when a fit returns to its last good state.

    If the loss, a weight or the state of the objective is not finite, or the objective
    reports a `largest_energy` above the limit, the fit goes back to its last good
    state, at most a twentieth of its epochs ago, and continues with half the step sizes
    of the optimizer and of the sampler, and new randomness.

    Args:
        optimizer: An Optax transformation of the gradient of all weights; None is
            `es.training.adam(2e-3, n)`, with n the number of updates of the fit.
        ema: The decay of the running mean of the weights, which is the result; 0 takes
            the last weights.
        precision: How matrix products of networks round their inputs on a GPU or TPU:
            `float32` not at all; `tensorfloat32` to 11 bits; `bfloat16` to 8 bits.
            None is JAX's own setting. Kernels, groups and steerable convolutions are
            never rounded.
        max_rollbacks: How often the fit goes back, before it gives up.
        energy_limit: The largest absolute value of an energy that is accepted.
    """

    optimizer: optax.GradientTransformation | None = None
    _: dataclasses.KW_ONLY
    ema: float = 0.995
    precision: Precision | None = None
    max_rollbacks: int = 3
    energy_limit: float = 1e6

    def __post_init__(self):
        check_integers("`Optimization`", least=0, max_rollbacks=self.max_rollbacks)
        check_positive("`Optimization`", energy_limit=self.energy_limit)
        if not 0 <= self.ema < 1:
            raise ValueError(f"`Optimization` needs 0 <= `ema` < 1, not {self.ema!r}.")

    def transformation(self, num_updates: int) -> optax.GradientTransformation:
        """Return the optimizer of a fit; equal settings give the same object."""
        if self.optimizer is None:
            return adam(_LEARNING_RATE, num_updates)
        return canonical_optimizer(self.optimizer)


@check_arguments
def adam(
    learning_rate: float,
    num_updates: int,
    *,
    warm_up: int = 0,
    gradient_clip: float = 10.0,
    factors: Mapping[int, float] | None = None,
) -> optax.GradientTransformation:
    """Return Adam behind a clip of the gradient, with a learning rate that falls.

    Equal arguments return the same object, which is compiled once.

    Args:
        learning_rate: The largest learning rate.
        num_updates: The number of updates over which it falls to 1 % along a cosine.
        warm_up: The number of updates over which it rises from 0.
        gradient_clip: The largest norm of the gradient of all weights.
        factors: Multiples of the first learning rate by the update at which each
            begins, instead of the cosine; `{}` keeps the learning rate constant.
    """
    check_positive(
        "`adam`", learning_rate=learning_rate, num_updates=num_updates,
        gradient_clip=gradient_clip,
    )  # fmt: skip
    check_integers("`adam`", least=0, warm_up=warm_up)
    for update, factor in (factors or {}).items():
        if update < 1 or not 0 < factor < float("inf"):
            raise ValueError(
                "`adam` needs `factors`, positive numbers by the update (from 1 on) "
                f"that they begin at, but got {dict(factors or {})!r}."
            )
    if factors is None:
        rate = optax.cosine_decay_schedule(learning_rate, num_updates, alpha=0.01)
    else:
        steps, before = {}, 1.0
        for update, factor in sorted(factors.items()):
            steps[update], before = factor / before, factor
        rate = optax.piecewise_constant_schedule(learning_rate, steps)
    return canonical_optimizer(
        optax.chain(
            optax.clip_by_global_norm(gradient_clip),
            optax.adam(lambda n: rate(n) * jnp.minimum((n + 1) / (warm_up + 1), 1)),
        )
    )


class TrainState(eqx.Module):
    """All that training carries from one epoch to the next."""

    energy: AbstractEnergy
    average: AbstractEnergy  # the energy with the running mean of its weights
    opt_state: PyTree
    objective_state: PyTree  # such as persistent particles
    key: UInt32[Array, "..."]  # key data; each epoch folds its number into this key
    epoch: Int[Array, ""]  # the number of epochs done
    num_updates: Int[Array, ""]
    step_scale: Scalar  # of updates and sampler steps, halved by each roll-back


class Trainer(eqx.Module):
    r"""Moves the weights of an energy down the gradient of an objective.

    Its parts are those of `fit`, for a number of batches an epoch; the decay of the
    running mean of the weights is at most n / (n + 9) in the n-th update.

    References:
        Jaini, Holdijk and Welling (2021), Algorithm 1.
    """

    objective: AbstractObjective
    optimizer: optax.GradientTransformation
    batch_size: int
    num_batches: int
    ema: float
    precision: Precision | None = eqx.field(static=True, default=None)
    mesh: Mesh | None = eqx.field(static=True, default=None)

    def shard(self, mesh: Mesh) -> "Trainer":
        """Return this trainer with its work split over the devices of a mesh."""
        objective = shard_samplers(self.objective, mesh)
        return dataclasses.replace(self, objective=objective, mesh=mesh)

    def init(self, key: Key, energy: AbstractEnergy, data: Batch) -> TrainState:
        """Return the state before the first epoch, given the checked data."""
        # With a weak type a second epoch would compile again.
        strong = lambda x: jnp.asarray(x, x.dtype) if eqx.is_array(x) else x
        energy = jax.tree.map(strong, energy)
        optimizer, objective_key, epoch_key = _prepare(self.optimizer, energy, key)
        zero, one = np.zeros((), int), np.ones((), data.points.dtype)
        return TrainState(
            energy, energy, optimizer, self.objective.init(objective_key, energy, data),
            epoch_key, on_device(zero), on_device(zero), on_device(one),
        )  # fmt: skip

    @eqx.filter_jit
    def epoch(
        self, state: TrainState, data: Particles, labels: Labels = None
    ) -> tuple[TrainState, dict[str, Array]]:
        """Train on an epoch's batches, in random order; return the info of each."""
        key = jr.fold_in(jr.wrap_key_data(state.key), state.epoch)
        order_key, batch_key = jr.split(key)
        rows = self._rows(order_key, len(data))
        arrays, static = eqx.partition(state, eqx.is_array)

        def body(arrays, inputs):
            rows, key = inputs
            batch_labels = None if labels is None else labels[rows]
            old = eqx.combine(arrays, static)
            batch = Batch(data[rows], batch_labels, rows, old.step_scale)
            new, info = self._step(key, old, batch)
            return eqx.filter(new, eqx.is_array), info

        keys = jr.split(batch_key, self.num_batches)
        arrays, infos = jax.lax.scan(body, arrays, (rows, keys))
        state = eqx.combine(arrays, static)
        return eqx.tree_at(lambda s: s.epoch, state, state.epoch + 1), infos

    def _rows(self, key: Key, num: int) -> Int[Array, "batch point"]:
        """Return the indices of each batch: random passes, cut to whole batches."""
        count = self.num_batches * self.batch_size
        pass_keys = jr.split(key, max(1, -(-count // num)))
        orders = jax.vmap(lambda key: jr.permutation(key, num))(pass_keys)
        return orders.ravel()[:count].reshape(self.num_batches, self.batch_size)

    def _step(
        self, key: Key, state: TrainState, batch: Batch
    ) -> tuple[TrainState, dict[str, Array]]:
        objective_state = state.objective_state
        if self.mesh is not None:
            objective_state = shard_rows(objective_state, self.mesh)
            arrays = batch.points, batch.labels, batch.rows
            points, labels, rows = shard_rows(arrays, self.mesh, self.batch_size)
            batch = Batch(points, labels, rows, batch.step_scale)

        @eqx.filter_value_and_grad(has_aux=True)
        def loss(energy):
            value, new, info = self.objective.loss(key, energy, objective_state, batch)
            if self.mesh is not None:
                new = shard_rows(new, self.mesh)
            return value, (new, info)

        precision = contextlib.nullcontext()
        if self.precision is not None:
            precision = jax.default_matmul_precision(self.precision)
        with precision:
            (value, (new_state, info)), gradient = loss(state.energy)
        weights = eqx.filter(state.energy, eqx.is_inexact_array)
        with jax.numpy_dtype_promotion("standard"):  # Optax mixes int and float
            updates, opt_state = self.optimizer.update(
                gradient, state.opt_state, weights
            )
        updates = jax.tree.map(lambda u: u * state.step_scale.astype(u.dtype), updates)
        energy, num = eqx.apply_updates(state.energy, updates), state.num_updates + 1
        decay = jnp.minimum(self.ema, num / (num + 9))  # a shorter mean at first

        def blend(old, new):
            if not eqx.is_inexact_array(new):
                return new
            part = decay.astype(new.dtype)
            return part * old + (1 - part) * new

        average = jax.tree.map(blend, state.average, energy)
        numbers = eqx.filter((energy, new_state, value), eqx.is_inexact_array)
        each = [jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(numbers)]
        state = TrainState(
            energy, average, opt_state, new_state, state.key, state.epoch, num,
            state.step_scale,
        )  # fmt: skip
        return state, {"loss": value, "is_finite": jnp.all(jnp.stack(each))} | info


@eqx.filter_jit
def _prepare(optimizer, energy, key):
    """Return the optimizer's state, the objective's key and the data of the epochs'."""
    objective_key, epoch_key = jr.split(key)
    weights = eqx.filter(energy, eqx.is_inexact_array)
    return optimizer.init(weights), objective_key, jr.key_data(epoch_key)
