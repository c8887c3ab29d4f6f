"""Samplers as one writes them by hand, with nothing checked, recorded or warned of."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array

NUM_TEMPERATURES = 12
_AT = (2.0, 0.0)


def two_modes(x: Array) -> Array:
    """Return the log density of two normals of width 1/2, four apart."""
    away = jnp.stack([x - jnp.array(_AT), x + jnp.array(_AT)])
    return jax.nn.logsumexp(-2 * jnp.sum(away**2, axis=1))


def start(num: int) -> Array:
    """Return where all samplers start."""
    return jr.normal(jr.key(1), (num, 2))


def _metropolis(keys: Any, x: Array, now: Any, then: Any, y: Array, h: Any) -> Any:
    """Return which Langevin proposals are accepted, and their probabilities."""
    (value, score), (new_value, new_score) = now, then
    there, back = y - x - h * score, x - y - h * new_score
    gap = jnp.sum(there**2, axis=-1) - jnp.sum(back**2, axis=-1)
    ratio = new_value - value + gap / (4 * h[..., 0])
    chance = jnp.exp(jnp.minimum(ratio, 0))
    return jr.uniform(keys, chance.shape) < chance, chance


def mala(key: Array, x: Array, num_steps: int) -> Array:
    """Return points after steps of MALA of size .1."""
    evaluate = jax.vmap(jax.value_and_grad(two_modes))
    h = jnp.full((1, 1), 0.1)

    def step(carry: Any, index: Array) -> tuple[Any, Array]:
        x, value, score = carry
        normal_key, uniform_key = jr.split(jr.fold_in(key, index))
        y = x + h * score + jnp.sqrt(2 * h) * jr.normal(normal_key, x.shape)
        new = evaluate(y)
        taken, chance = _metropolis(uniform_key, x, (value, score), new, y, h)
        x = jnp.where(taken[:, None], y, x)
        score = jnp.where(taken[:, None], new[1], score)
        return (x, jnp.where(taken, new[0], value), score), jnp.mean(chance)

    return jax.lax.scan(step, (x, *evaluate(x)), jnp.arange(num_steps))[0][0]


def tempering(key: Array, x: Array, num_steps: int) -> Array:
    """Return the cold ends of ladders of MALA that swap with their neighbors.

    At the hot end a new point of a normal reference is drawn in each step. The ladder
    and the step sizes stay, and log Z is not estimated.
    """
    num = NUM_TEMPERATURES
    betas = (jnp.arange(num - 1, -1, -1) / (num - 1)) ** 4
    center, scale = jnp.mean(x, axis=0), jnp.std(x)
    b, h = betas[:-1, None], jnp.full((num - 1, 1, 1), 0.1)

    def reference(x: Array) -> Array:
        constant = jnp.log(2 * jnp.pi * scale**2)
        return -jnp.sum(((x - center) / scale) ** 2) / 2 - constant

    values = lambda x: (
        jax.value_and_grad(two_modes)(x),
        jax.value_and_grad(reference)(x),
    )
    evaluate = jax.vmap(jax.vmap(values))

    def tempered(walkers: Any) -> tuple[Array, Array]:
        (p, p_score), (r, r_score) = jax.tree.map(lambda leaf: leaf[: num - 1], walkers)
        wide = b[..., None]
        return (1 - b) * r + b * p, (1 - wide) * r_score + wide * p_score

    def step(carry: Any, index: Array) -> tuple[Any, Array]:
        x, walkers = carry
        keys = jr.split(jr.fold_in(key, index), 4)
        score, moving = tempered(walkers)[1], x[:-1]
        y = moving + h * score + jnp.sqrt(2 * h) * jr.normal(keys[0], moving.shape)
        drawn = center + scale * jr.normal(keys[1], x.shape[1:])
        proposed = jnp.concatenate([y, drawn[None]])
        new = evaluate(proposed)
        now, then = tempered(walkers), tempered(new)
        taken, chance = _metropolis(keys[2], moving, now, then, y, h)
        taken = jnp.concatenate([taken, jnp.ones((1, x.shape[1]), bool)])
        wide = lambda mask, leaf: mask.reshape(*mask.shape, *[1] * (leaf.ndim - 2))
        pick = lambda new, old: jnp.where(wide(taken, old), new, old)
        x, walkers = jax.tree.map(pick, (proposed, new), (x, walkers))
        ratio = walkers[0][0] - walkers[1][0]
        gain = (betas[:-1] - betas[1:])[:, None] * (ratio[1:] - ratio[:-1])
        due = (jnp.arange(num - 1) % 2 == index % 2)[:, None]
        swap = due & (jr.uniform(keys[3], gain.shape) < jnp.exp(gain))
        hot, cold = jnp.pad(swap, ((0, 1), (0, 0))), jnp.pad(swap, ((1, 0), (0, 0)))

        def reorder(leaf: Array) -> Array:
            colder = jnp.where(wide(cold, leaf), jnp.roll(leaf, 1, axis=0), leaf)
            return jnp.where(wide(hot, leaf), jnp.roll(leaf, -1, axis=0), colder)

        return jax.tree.map(reorder, (x, walkers)), jnp.mean(chance)

    x = jnp.broadcast_to(x, (num, *x.shape))
    (x, _), _ = jax.lax.scan(step, (x, evaluate(x)), jnp.arange(num_steps))
    return x[0]


def nuts(key: Array, x: Array, num_steps: int) -> Array:
    """Return points after BlackJAX's warm-up and its NUTS, a chain each."""
    import blackjax

    warm_up: Any = blackjax.window_adaptation(blackjax.nuts, two_modes)

    def chain(key: Array, point: Array) -> Array:
        warm_key, key = jr.split(key)
        (state, tuned), _ = warm_up.run(warm_key, point, num_steps=num_steps // 2)
        algorithm: Any = blackjax.nuts(two_modes, **tuned)
        move = lambda state, key: (algorithm.step(key, state)[0], None)
        return jax.lax.scan(move, state, jr.split(key, num_steps))[0].position

    return jax.vmap(chain)(jr.split(key, len(x)), x)


LOOPS: dict[str, Callable[[Array, Array, int], Array]] = {
    "MALA": mala, "ParallelTempering": tempering, "NUTS": nuts,
}  # fmt: skip
