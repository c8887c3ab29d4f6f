"""Training epochs beside the same loops written by hand in Equinox and Optax."""

import dataclasses
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import optax
from jaxtyping import Array

import equistein as es
from benchmarks._timing import Contestant, print_times, REPEATS
from equistein.training import AbstractObjective, Batch, Trainer

CHARGES = (6, 6, 6, 6, 6, 8, 1, 1, 1, 1, 1, 1, 1, 1)
_MOST_BATCHES = 8  # in an epoch
_EMA = 0.995
_STEP, _CHAINS, _STEPS = 0.01, 256, 20  # of the negatives
_NOISE = 0.1  # of denoising

ByHand = Callable[[Any, Array, Array, Any], tuple[Array, Any]]
"""The loss of an energy, a key, points and what is carried; with what is carried on."""


@dataclasses.dataclass(frozen=True)
class Case:
    """One objective, as the library has it and by hand, with the same network."""

    energy: es.energies.AbstractEnergy
    objective: AbstractObjective
    data: Array
    batch_size: int
    by_hand: ByHand
    carried: Any = None

    @property
    def num_batches(self) -> int:
        """How many batches an epoch has."""
        return min(_MOST_BATCHES, len(self.data) // self.batch_size)

    def ours(self) -> tuple[Trainer, Any]:
        """Return the trainer and its first state."""
        sizes = (self.batch_size, self.num_batches)
        trainer = Trainer(self.objective, optax.adam(1e-3), *sizes, _EMA)
        batch = Batch(self.data, None, jnp.arange(len(self.data)))
        return trainer, trainer.init(jr.key(0), self.energy, batch)

    def loop(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """Return the epoch by hand, and its arguments."""
        optimizer, shape = optax.adam(1e-3), (self.num_batches, self.batch_size)
        weights, static = eqx.partition(self.energy, eqx.is_inexact_array)

        def epoch(key: Array, state: Any, data: Array) -> Any:
            def step(state: Any, inputs: Any) -> Any:
                (weights, average, opt_state, carried), (rows, key) = state, inputs

                def loss(weights: Any) -> tuple[Array, Any]:
                    energy = eqx.combine(weights, static)
                    return self.by_hand(energy, key, data[rows], carried)

                found, slope = jax.value_and_grad(loss, has_aux=True)(weights)
                updates, opt_state = optimizer.update(slope, opt_state)
                weights = optax.apply_updates(weights, updates)
                average = optax.incremental_update(weights, average, 1 - _EMA)
                return (weights, average, opt_state, found[1]), found[0]

            order_key, key = jr.split(key)
            order = jr.permutation(order_key, len(data))[: shape[0] * shape[1]]
            inputs = (order.reshape(shape), jr.split(key, shape[0]))
            return jax.lax.scan(step, state, inputs)

        state = (weights, weights, optimizer.init(weights), self.carried)
        return epoch, (jr.key(1), state, self.data)


def epochs() -> None:
    """Print the milliseconds of an epoch by each objective."""
    print(f"\nAn epoch of at most {_MOST_BATCHES} batches; median of {REPEATS} runs")
    for name, case in cases().items():
        print(f"\n{name}, batches of {case.batch_size}")
        print_times(contestants(case), "by hand")


def contestants(case: Case) -> dict[str, Contestant]:
    """Return an epoch by hand, and ours."""
    (trainer, state), (by_hand, arguments) = case.ours(), case.loop()
    program = jax.jit(by_hand)
    finish = lambda found: jax.block_until_ready(jax.tree.leaves(found))
    return {
        "by hand": Contestant(lambda: finish(program(*arguments))),
        "equistein": Contestant(lambda: finish(trainer.epoch(state, case.data))),
    }


def _scores(energy: Any, points: Array) -> Array:
    return jax.vmap(jax.grad(energy.log_density))(points)


def _centered(x: Array) -> Array:
    return x - jnp.mean(x, axis=-2, keepdims=True)


def _contrastive(energy: Any, key: Array, points: Array, chains: Array) -> Any:
    """Langevin chains that persist are the negatives."""
    frozen = es.energies.freeze(energy)

    def move(index: Any, x: Array) -> Array:
        noise = jr.normal(jr.fold_in(key, index), x.shape)
        return _centered(x + _STEP * _scores(frozen, x) + (2 * _STEP) ** 0.5 * noise)

    chains = jax.lax.fori_loop(0, _STEPS, move, chains)
    data, model = jax.vmap(energy)(points), jax.vmap(energy)(chains)
    penalty = jnp.mean(data**2) + jnp.mean(model**2)
    return jnp.mean(data) - jnp.mean(model) + 1e-3 * penalty, chains


def _score_matching(energy: Any, key: Array, points: Array, _: Any) -> Any:
    def value(x: Array, xi: Array) -> Array:
        score, change = jax.jvp(jax.grad(energy.log_density), (x,), (xi,))
        return jnp.mean(score**2 / 2 + xi * change)

    along = _centered(jr.normal(key, points.shape))
    return jnp.mean(jax.vmap(value)(points, along)), None


def _denoising(energy: Any, key: Array, points: Array, _: Any) -> Any:
    noise = _centered(jr.normal(key, points.shape))
    scores = _scores(energy, points + _NOISE * noise)
    return jnp.mean((_NOISE * scores + noise) ** 2), None


def _at_all_levels(energy: Any, key: Array, points: Array, _: Any) -> Any:
    """Denoising at levels that are spread evenly over the logarithm of their range."""
    level_key, noise_key = jr.split(key)
    offsets = jr.uniform(level_key, (len(points),))
    least, most = jax.lax.stop_gradient((energy.sigma_min, energy.sigma_max))
    levels = most * (least / most) ** (
        (jnp.arange(len(points)) + offsets) / len(points)
    )

    def squares(x: Array, level: Array, xi: Array) -> Array:
        xi = energy.project(xi)
        score = jax.grad(energy.at(level).log_density)(energy.project(x) + level * xi)
        return jnp.mean((level * score + xi) ** 2)

    noise = jr.normal(noise_key, points.shape)
    return jnp.mean(jax.vmap(squares)(points, levels, noise)), None


def molecules(num: int = 256) -> Case:
    """Return clouds of 14 atoms, and a graph network with an energy of each level."""
    x = 1.4 * jr.normal(jr.key(0), (num, len(CHARGES), 3))
    network = es.networks.EGNN(CHARGES, atomic_numbers=CHARGES, key=jr.key(1))
    energy = es.diffusion.NoiseEnergy(network, x, 0.05)
    objective = es.objectives.NoiseConditionalScoreMatching()
    return Case(energy, objective, x, 32, _at_all_levels)


def cases() -> dict[str, Case]:
    """Return what is trained, by name."""
    target, objectives = es.targets.DoubleWell(), es.objectives
    wells = target.sample(jr.key(0), 1_024)
    energy = es.models.energy_for(1, target.group, wells)
    negatives = es.negatives.Persistent(
        es.Langevin(_STEP, project=target.group.project),
        es.training.Box(wells, target.group), num_particles=_CHAINS, num_steps=_STEPS,
    )  # fmt: skip
    divergence = objectives.ContrastiveDivergence(negatives)
    denoising = objectives.DenoisingScoreMatching(_NOISE)
    pictures = jr.uniform(jr.key(0), (256, 16, 16, 1))
    model = es.models.image_model(jr.key(1), es.groups.ImageRotations(), pictures)
    return {
        "contrastive divergence, dw4": Case(
            energy, divergence, wells, 128, _contrastive, wells[:_CHAINS]
        ),
        "score matching, dw4": Case(
            energy, objectives.ScoreMatching(), wells, 128, _score_matching
        ),
        "denoising, dw4": Case(energy, denoising, wells, 128, _denoising),
        "all levels, molecules": molecules(),
        "all levels, images": Case(
            model.energy, model.objective, pictures, 32, _at_all_levels
        ),
    }
