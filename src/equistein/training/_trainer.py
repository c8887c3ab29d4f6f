"""Algorithm 1 of the paper, with persistent particles: one compiled call an epoch."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import optax
from jaxtyping import Array, Bool, Float, Int, PyTree

from equistein._types import Key, Particles, Scalar
from equistein.energies import (
    AbstractEnergy,
    FormulasEnergy,
    NoiseEnergy,
    TemperedEnergy,
)
from equistein.kernels import AbstractKernel
from equistein.samplers import AbstractSampler, SVGD
from equistein.training._annealed import Annealing
from equistein.training._config import FitConfig
from equistein.training._lengths import Lengths, levels_of
from equistein.training._losses import (
    contrastive_divergence,
    cross_entropy,
    denoising_score_matching,
    energies_of,
    energy_magnitude,
    noise_levels,
    squared_error,
)
from equistein.training._samplers import negatives_sampler
from equistein.training._start import AbstractStart
from equistein.training._state import BatchInfo, Labels, TrainState

_ONE_SCORE_IN = 8


class Trainer(eqx.Module):
    r"""The training step of an energy based model.

    $$L = a \bigl(\mathbb E_{data} E(x^+) - \mathbb E_{p_\theta} E(x^-)\bigr) / T
      + b\, L_{labels} + c\, L_{denoising}
      + \lambda \bigl(\mathbb E E(x^+)^2 + \mathbb E E(x^-)^2\bigr)$$

    The negatives are persistent particles, or drawn from a replay buffer, each of which
    starts anew with some probability before the sampler moves them all.

    Args:
        config: The settings.
        lengths: Its lengths.
        kernel: The kernel of the sampler that the settings name.
        optimizer: What moves the weights.
        start: Where particles start anew.
        sampler: Another sampler of the negatives, or None.

    References:
        Jaini, Holdijk and Welling (2021), Algorithm 1 and equation loss-JEM.
    """

    config: FitConfig
    lengths: Lengths
    kernel: AbstractKernel
    optimizer: optax.GradientTransformation
    start: AbstractStart
    sampler: AbstractSampler | None = None

    def init(self, key: Key, energy: AbstractEnergy) -> TrainState:
        """Build the state before the first epoch."""
        energy = jax.tree.map(_strong, energy)
        start_key, epoch_key = jr.split(key)
        weights = eqx.filter(energy, eqx.is_inexact_array)
        size = self.config.buffer_size or self.config.num_particles
        particles = self.start.sample(start_key, size)
        return TrainState(
            energy,
            energy,
            self.optimizer.init(weights),
            particles,
            jr.key_data(epoch_key),
            jnp.zeros((), int),
            jnp.zeros((), int),
            jnp.ones((), particles.dtype),
        )

    @eqx.filter_jit
    def epoch(
        self, state: TrainState, data: Particles, labels: Labels = None
    ) -> tuple[TrainState, BatchInfo]:
        """Train on an epoch's batches, in random order; return the info of each."""
        key = jr.fold_in(jr.wrap_key_data(state.key), state.epoch)
        order_key, batch_key = jr.split(key)
        size = self.config.batch_size
        num_batches = self.config.num_batches(len(data))
        passes = jr.split(order_key, max(1, -(-num_batches * size // len(data))))
        orders = jax.vmap(lambda key: jr.permutation(key, len(data)))(passes)
        rows = orders.ravel()[: num_batches * size].reshape(num_batches, size)
        arrays, static = eqx.partition(state, eqx.is_array)

        def body(arrays, inputs):
            rows, key = inputs
            known = None if labels is None else labels[rows]
            state, info = self._batch(
                key, eqx.combine(arrays, static), data, rows, known
            )
            return eqx.filter(state, eqx.is_array), info

        keys = jr.split(batch_key, num_batches)
        arrays, infos = jax.lax.scan(body, arrays, (rows, keys))
        state = eqx.combine(arrays, static)
        return eqx.tree_at(lambda s: s.epoch, state, state.epoch + 1), infos

    def _batch(
        self,
        key: Key,
        state: TrainState,
        data: Float[Array, "datum *shape"],
        rows: Int[Array, " point"],
        labels: Labels,
    ) -> tuple[TrainState, BatchInfo]:
        config, batch = self.config, data[rows]
        blur_key, move_key, loss_key = jr.split(key, 3)
        level = self._level(state)
        blur = config.data_noise if level is None else level
        if level is not None or config.data_noise:
            noise = jr.normal(blur_key, batch.shape, batch.dtype)
            batch = batch + blur * jax.vmap(self.start.group.project)(noise)
        negatives, monitors = None, (None, None, None)
        if config.contrastive:
            state, negatives, monitors = self._negatives(
                move_key, state, data, batch, level
            )

        @eqx.filter_value_and_grad(has_aux=True)
        def loss(energy):
            return self._loss(
                loss_key, energy, batch, labels, negatives, data[rows], level
            )

        (_, info), gradient = loss(state.energy)
        weights = eqx.filter(state.energy, eqx.is_inexact_array)
        with jax.numpy_dtype_promotion("standard"):  # Optax mixes int and float
            updates, opt_state = self.optimizer.update(
                gradient, state.opt_state, weights
            )
        updates = jax.tree.map(lambda u: u * state.scale.astype(u.dtype), updates)
        energy = eqx.apply_updates(state.energy, updates)
        update = state.update + 1
        decay = jnp.minimum(config.ema, update / (update + 9))
        info = eqx.tree_at(
            lambda i: (i.score_norm, i.displacement, i.sampler_steps, i.is_finite),
            info,
            (*monitors, _all_finite((energy, state.particles, info.loss))),
            is_leaf=lambda leaf: leaf is None,
        )
        state = TrainState(
            energy,
            _blend(decay, state.average, energy),
            opt_state,
            state.particles,
            state.key,
            state.epoch,
            update,
            state.scale,
        )
        return state, info

    def _level(self, state: TrainState) -> Scalar | None:
        """Return the noise of the batch, for an energy that has one for each level.

        The particles are annealed from the largest to the least noise, some steps of
        the way a batch, as new samples are, and then start anew.
        """
        if not isinstance(state.energy, NoiseEnergy) or not self.config.contrastive:
            return None
        after = self._first(state) + self.config.num_steps
        return self._annealing(state).level(state.energy, after)

    def _first(self, state: TrainState) -> Int[Array, ""]:
        """Return the number of the first annealing step of a batch."""
        return self.config.num_steps * (state.update % self._num_parts)

    @property
    def _num_parts(self) -> int:
        """The number of batches that one annealing takes."""
        return -(-self.config.sample_steps // self.config.num_steps)

    def _anneal(
        self, state: TrainState, energy: NoiseEnergy, particles: Particles
    ) -> Particles:
        """Take a batch's steps, with one key for all batches of an annealing."""
        key = jr.fold_in(jr.wrap_key_data(state.key), 2**32 - 1)  # no epoch's number
        key = jr.fold_in(key, state.update // self._num_parts)
        start_key, run_key = jr.split(key)
        first = self._first(state)
        fresh = energy.start(start_key, len(particles), particles.shape[1:])
        particles = jnp.where(first == 0, fresh, particles)
        annealing, num_steps = self._annealing(state), self.config.num_steps
        return annealing.run(run_key, energy, particles, first, num_steps)

    def _annealing(self, state: TrainState) -> Annealing:
        group = self.start.group
        return Annealing(self.config, self._lengths(state), self.kernel, group)

    def _lengths(self, state: TrainState) -> Lengths:
        return self.lengths.scaled(self.factor(state))

    def _negatives(
        self,
        key: Key,
        state: TrainState,
        data: Float[Array, "datum *shape"],
        batch: Float[Array, "point *shape"],
        level: Scalar | None,
    ) -> tuple[TrainState, Particles, tuple[Scalar, Scalar, Scalar]]:
        """Reset some of the particles and move them.

        Returns:
            The state with them, the negatives, and the norm of their scores, how far
            they moved, and in how many steps.
        """
        config, buffer = self.config, state.particles
        pick_key, reset_key, move_key = jr.split(key, 3)
        picked = None
        if len(buffer) == config.num_particles:
            particles = buffer
        else:
            picked = jr.permutation(pick_key, len(buffer))[: config.num_particles]
            particles = buffer[picked]
        energy = state.energy
        if level is None:
            particles = self._reset(reset_key, particles, data)
            sampler = self.sampler
            if sampler is None:
                sampler = negatives_sampler(
                    config, self._lengths(state), self.kernel, self.start.group
                )
            moved, steps = self._move(move_key, sampler, energy, particles, batch)
        else:
            assert isinstance(energy, NoiseEnergy)
            moved = self._anneal(state, energy, particles)
            steps, energy = jnp.asarray(config.num_steps), energy.at(level)
        moved = jax.vmap(self.start.group.project)(moved)
        buffer = moved if picked is None else buffer.at[picked].set(moved)
        shift = jnp.sqrt(jnp.sum((moved - particles) ** 2) / len(moved))
        model = tempered(energy, config.temperature)
        # A mean over an epoch's batches needs only some of each.
        scores = jax.vmap(jax.grad(model))(moved[: -(-len(moved) // _ONE_SCORE_IN)])
        norm = jnp.sqrt(jnp.sum(scores**2) / len(scores))
        state = eqx.tree_at(lambda s: s.particles, state, buffer)
        return state, moved, (norm, shift, steps.astype(shift.dtype))

    def _reset(
        self, key: Key, particles: Particles, data: Float[Array, "datum *shape"]
    ) -> Particles:
        """Let each particle start anew with some probability."""
        coin_key, start_key, data_key, which_key = jr.split(key, 4)
        num = len(particles)
        fresh = self.start.sample(start_key, num)
        if self.config.reset_to_data:
            at_data = jr.bernoulli(data_key, self.config.reset_to_data, (num,))
            chosen = data[jr.randint(which_key, (num,), 0, len(data))]
            fresh = _where(at_data, chosen, fresh)
        coins = jr.bernoulli(coin_key, self.config.reset_probability, (num,))
        return _where(coins, fresh, particles)

    def _move(
        self,
        key: Key,
        sampler: AbstractSampler,
        energy: AbstractEnergy,
        particles: Particles,
        batch: Float[Array, "point *shape"],
    ) -> tuple[Particles, Int[Array, ""]]:
        config = self.config
        log_density = tempered(energy, config.temperature).log_density
        if config.repel:
            assert isinstance(sampler, SVGD)  # the settings name no other
            sampler = sampler.with_repellers(batch)
        state = sampler.init(particles)

        def step(state):
            return sampler.step(jr.fold_in(key, state.step), state, log_density)

        if config.tolerance is None:
            state = jax.lax.fori_loop(
                0, config.num_steps, lambda _, state: step(state)[0], state
            )
            return state.particles, state.step
        tolerance = config.tolerance

        def unfinished(carry):
            state, update_norm = carry
            return (state.step < config.num_steps) & (update_norm >= tolerance)

        def body(carry):
            state, info = step(carry[0])
            return state, info.update_norm

        first = jnp.full((), jnp.inf, particles.dtype)
        state, _ = jax.lax.while_loop(unfinished, body, (state, first))
        return state.particles, state.step

    def factor(self, state: TrainState) -> Scalar:
        """Return what the sampler's steps are multiplied with in a state's epoch."""
        factor = state.scale
        changes = zip(self.config.step_epochs, self.config.step_factors, strict=True)
        for first, value in changes:
            later = state.scale * jnp.asarray(value, factor.dtype)
            factor = jnp.where(state.epoch >= first, later, factor)
        return factor

    def _loss(
        self,
        key: Key,
        energy: AbstractEnergy,
        positives: Float[Array, "point *shape"],
        labels: Labels,
        negatives: Particles | None,
        unblurred: Float[Array, "point *shape"],
        level: Scalar | None,
    ) -> tuple[Scalar, BatchInfo]:
        config, model = self.config, energy
        weight = config.contrastive
        if level is not None:
            assert isinstance(energy, NoiseEnergy)
            model = energy.at(level)
            weight = weight * level / jax.lax.stop_gradient(energy.scale)
        above, logits = energies_of(model, positives, labels)
        below = None if negatives is None else jax.vmap(model)(negatives)
        value = jnp.zeros((), above.dtype)
        if config.regularization:
            value += config.regularization * energy_magnitude(above, below)
        largest = jnp.max(jnp.abs(above))
        negative = supervised = accuracy = matching = num_labels = None
        if below is not None:
            gap = contrastive_divergence(above, below) / config.temperature
            value += weight * gap
            negative = jnp.mean(below)
            largest = jnp.maximum(largest, jnp.max(jnp.abs(below)))
        if labels is not None and logits is not None:
            supervised, accuracy = cross_entropy(logits, labels)
            num_labels = jnp.sum(labels >= 0)
        elif labels is not None and not isinstance(energy, FormulasEnergy):
            supervised = squared_error(energy, unblurred, labels)
            num_labels = jnp.sum(jnp.isfinite(labels))
        if supervised is not None:
            value += config.supervised * supervised
        if config.score_matching:
            noise, points = self.lengths.noise, positives
            levels = levels_of(energy)
            if levels is not None:
                noise_key, key = jr.split(key)
                noise = noise_levels(noise_key, levels, len(positives))
                points = positives if level is None else unblurred
            matching = denoising_score_matching(
                key,
                tempered(energy, config.temperature),
                points,
                noise,
                self.start.group,
                labels if isinstance(energy, FormulasEnergy) else None,
            )
            value += config.score_matching * matching
        info = BatchInfo(
            value, jnp.mean(above), negative, largest, None, None, None, supervised,
            accuracy, num_labels, matching, jnp.ones((), bool),
        )  # fmt: skip
        return value, info


def tempered(energy: AbstractEnergy, temperature: float) -> AbstractEnergy:
    """Return E / T, or the energy itself at T = 1."""
    return energy if temperature == 1 else TemperedEnergy(energy, temperature)


def _strong(leaf: PyTree) -> PyTree:
    """Return an array without a weak type: an epoch gives none, and would recompile."""
    return jnp.asarray(leaf, leaf.dtype) if eqx.is_array(leaf) else leaf


def _where(
    chosen: Bool[Array, " particle"], there: Particles, otherwise: Particles
) -> Particles:
    return jnp.where(chosen.reshape(-1, *[1] * (there.ndim - 1)), there, otherwise)


def _blend(decay: Scalar, average: AbstractEnergy, energy: AbstractEnergy):
    def blend(old, new):
        if not eqx.is_inexact_array(new):
            return new
        share = decay.astype(new.dtype)
        return share * old + (1 - share) * new

    return jax.tree.map(blend, average, energy)


def _all_finite(tree: PyTree) -> Bool[Array, ""]:
    leaves = jax.tree.leaves(eqx.filter(tree, eqx.is_inexact_array))
    return jnp.all(jnp.stack([jnp.all(jnp.isfinite(leaf)) for leaf in leaves]))
