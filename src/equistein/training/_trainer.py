"""The training step: one compiled call an epoch."""

import contextlib
import dataclasses
import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import optax
from jax.sharding import Mesh
from jaxtyping import Array, Bool, Float, Int, PyTree, UInt32

from equistein._sharding import keep_split
from equistein._types import Key, Particles, Scalar
from equistein.energies import AbstractEnergies
from equistein.samplers import on_mesh
from equistein.training._batch import Batch, Labels
from equistein.training._objectives import AbstractObjective
from equistein.training._optimization import Precision


class TrainState(eqx.Module):
    """All that training carries from one epoch to the next."""

    energy: AbstractEnergies
    average: AbstractEnergies  # the running mean of its weights
    opt_state: PyTree
    objective_state: PyTree  # such as persistent particles
    key: UInt32[Array, "..."]  # the words of the key of all epochs
    epoch: Int[Array, ""]  # the number of epochs done
    update: Int[Array, ""]
    scale: Scalar  # of updates and of a sampler's steps: halved by each roll-back


class Trainer(eqx.Module):
    r"""Moves the weights of an energy down the gradient of an objective.

    Args:
        objective: What is minimized.
        optimizer: What turns gradients into updates.
        batch_size: The number of data points of a batch.
        num_batches: The number of batches in an epoch.
        ema: The decay of the running mean of the weights, at most n / (n + 9) in the
            n-th update.
        precision: As for `Optimization`.
        mesh: The devices that share each batch and the negatives, or None.

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

    def on(self, mesh: Mesh) -> "Trainer":
        """Return this trainer with its work split over the devices of a mesh."""
        objective = on_mesh(self.objective, mesh)
        return dataclasses.replace(self, objective=objective, mesh=mesh)

    def init(self, key: Key, energy: AbstractEnergies, data: Batch) -> TrainState:
        """Return the state before the first epoch."""
        energy = jax.tree.map(_strong, energy)
        objective_key, epoch_key = jr.split(key)
        return TrainState(
            energy, energy,
            self.optimizer.init(eqx.filter(energy, eqx.is_inexact_array)),
            self.objective.init(objective_key, energy, data),
            jr.key_data(epoch_key), jnp.zeros((), int), jnp.zeros((), int),
            jnp.ones((), data.points.dtype),
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
            known = None if labels is None else labels[rows]
            before = eqx.combine(arrays, static)
            batch = Batch(data[rows], known, rows, before.scale)
            after, info = self._step(key, before, batch)
            return eqx.filter(after, eqx.is_array), info

        keys = jr.split(batch_key, self.num_batches)
        arrays, infos = jax.lax.scan(body, arrays, (rows, keys))
        state = eqx.combine(arrays, static)
        return eqx.tree_at(lambda s: s.epoch, state, state.epoch + 1), infos

    def _rows(self, key: Key, num: int) -> Int[Array, "batch point"]:
        """Return which data each batch has: all of it, as often as it takes."""
        count = self.num_batches * self.batch_size
        passes = jr.split(key, max(1, -(-count // num)))
        orders = jax.vmap(lambda key: jr.permutation(key, num))(passes)
        return orders.ravel()[:count].reshape(self.num_batches, self.batch_size)

    def _step(
        self, key: Key, state: TrainState, batch: Batch
    ) -> tuple[TrainState, dict[str, Array]]:
        before = state.objective_state
        if self.mesh is not None:
            before = keep_split(before, self.mesh)
            points, labels, rows = keep_split(
                (batch.points, batch.labels, batch.rows), self.mesh, self.batch_size
            )
            batch = Batch(points, labels, rows, batch.step_scale)

        @eqx.filter_value_and_grad(has_aux=True)
        def loss(energy):
            value, after, info = self.objective.loss(key, energy, before, batch)
            if self.mesh is not None:
                after = keep_split(after, self.mesh)
            return value, (after, info)

        rounded = contextlib.nullcontext()
        if self.precision is not None:
            rounded = jax.default_matmul_precision(self.precision)
        with rounded:
            (value, (after, info)), gradient = loss(state.energy)
        weights = eqx.filter(state.energy, eqx.is_inexact_array)
        with jax.numpy_dtype_promotion("standard"):  # Optax mixes int and float
            updates, opt_state = self.optimizer.update(
                gradient, state.opt_state, weights
            )
        updates = jax.tree.map(lambda u: u * state.scale.astype(u.dtype), updates)
        energy, update = eqx.apply_updates(state.energy, updates), state.update + 1
        decay = jnp.minimum(self.ema, update / (update + 9))  # a shorter mean at first
        blend = functools.partial(_blend, decay)
        average = jax.tree.map(blend, state.average, energy)
        finite = _all_finite((energy, after, value))
        state = TrainState(
            energy, average, opt_state, after, state.key, state.epoch, update,
            state.scale,
        )  # fmt: skip
        return state, {"loss": value, "is_finite": finite} | info


def _strong(leaf: PyTree) -> PyTree:
    """Return an array without a weak type: an epoch gives none, and would recompile."""
    return jnp.asarray(leaf, leaf.dtype) if eqx.is_array(leaf) else leaf


def _all_finite(tree: PyTree) -> Bool[Array, ""]:
    leaves = jax.tree.leaves(eqx.filter(tree, eqx.is_inexact_array))
    finite: list[Float[Array, ""]] = [jnp.all(jnp.isfinite(leaf)) for leaf in leaves]
    return jnp.all(jnp.stack(finite))


def _blend(decay: Scalar, old: PyTree, new: PyTree) -> PyTree:
    if not eqx.is_inexact_array(new):
        return new
    part = decay.astype(new.dtype)
    return part * old + (1 - part) * new
