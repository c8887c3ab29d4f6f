"""Samplers as one writes them by hand, with nothing checked, recorded or warned of."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array

NUM_TEMPERATURES = 12
HMC_STEPS = 4
_AT = (2.0, 0.0)


def two_modes(x: Array) -> Array:
    """Return the log density of two normals of width 1/2, four apart."""
    away = jnp.stack([x - jnp.array(_AT), x + jnp.array(_AT)])
    return jax.nn.logsumexp(-2 * jnp.sum(away**2, axis=1))


def start(num: int) -> Array:
    """Return where all samplers start."""
    return jr.normal(jr.key(1), (num, 2))


def svgd(key: Array, x: Array, num_steps: int) -> Array:
    """Return particles after steps of SVGD of size .1, at bandwidth 1/2."""
    del key
    score, h, num = jax.vmap(jax.grad(two_modes)), 0.5, len(x)

    def step(index: Any, x: Array) -> Array:
        squares = jnp.sum(x**2, axis=1)
        gram = jnp.exp((2 * x @ x.T - squares[:, None] - squares) / (2 * h**2))
        apart = jnp.sum(gram, axis=1, keepdims=True) * x - gram @ x
        return x + 0.1 / num * (gram @ score(x) + apart / h**2)

    return jax.lax.fori_loop(0, num_steps, step, x)


def langevin(key: Array, x: Array, num_steps: int) -> Array:
    """Return points after steps of Langevin of size .1."""
    score, h = jax.vmap(jax.grad(two_modes)), 0.1

    def step(index: Any, x: Array) -> Array:
        noise = jr.normal(jr.fold_in(key, index), x.shape)
        return x + h * score(x) + jnp.sqrt(2 * h) * noise

    return jax.lax.fori_loop(0, num_steps, step, x)


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


def smc(key: Array, x: Array, num_steps: int) -> Array:
    """Return particles that went from a normal reference to the density.

    A step takes the next temperature by bisection, at which the weights keep .95 of
    their effective size, resamples where half of it is lost, and moves each particle
    five times by MALA.
    """
    num, center, scale = len(x), jnp.mean(x, axis=0), jnp.std(x)
    h = jnp.full((1, 1), 0.1)
    wide = lambda x: (
        -jnp.sum(((x - center) / scale) ** 2) / 2 - jnp.log(2 * jnp.pi * scale**2)
    )
    ends = jax.vmap(
        lambda x: (jax.value_and_grad(two_modes)(x), jax.value_and_grad(wide)(x))
    )

    def path(beta: Array, x: Array) -> tuple[Array, Array]:
        (p, p_score), (r, r_score) = ends(x)
        return (1 - beta) * r + beta * p, (1 - beta) * r_score + beta * p_score

    def share(weights: Array) -> Array:
        logsumexp = jax.nn.logsumexp
        return jnp.exp(2 * logsumexp(weights) - logsumexp(2 * weights)) / num

    def step(carry: Any) -> Any:
        index, x, weights, beta, log_z = carry
        choose_key, key_of_moves = jr.split(jr.fold_in(key, index))
        (p, _), (r, _) = ends(x)
        ratio = p - r

        def enough(then: Array) -> Array:
            gains = (then - beta) * ratio
            first, second = weights + gains, weights + 2 * gains
            size = 2 * jax.nn.logsumexp(first) - jax.nn.logsumexp(second)
            return jnp.exp(size) >= 0.95

        def halve(_: Any, bounds: Any) -> Any:
            low, high = bounds
            middle = (low + high) / 2
            good = enough(middle)
            return jnp.where(good, middle, low), jnp.where(good, high, middle)

        low, _ = jax.lax.fori_loop(0, 40, halve, (beta, jnp.ones_like(beta)))
        then = jnp.where(enough(jnp.ones_like(beta)), 1.0, low)
        weights = weights + (then - beta) * ratio
        log_z = log_z + jax.nn.logsumexp(weights)
        weights = jax.nn.log_softmax(weights)
        ticks = (jnp.arange(num) + jr.uniform(choose_key)) / num
        chosen = jnp.searchsorted(jnp.cumsum(jnp.exp(weights)), ticks).clip(0, num - 1)
        due = (share(weights) < 0.5) | (then == 1)
        x = x[jnp.where(due, chosen, jnp.arange(num))]
        weights = jnp.where(due, -jnp.log(num), weights)

        def move(carry: Any, key: Array) -> tuple[Any, None]:
            x, now = carry
            normal_key, uniform_key = jr.split(key)
            y = x + h * now[1] + jnp.sqrt(2 * h) * jr.normal(normal_key, x.shape)
            new = path(then, y)
            taken, _ = _metropolis(uniform_key, x, now, new, y, h)
            pick = lambda new, old: jnp.where(
                taken.reshape(-1, *[1] * (new.ndim - 1)), new, old
            )
            return jax.tree.map(pick, (y, new), (x, now)), None

        moves = jr.split(key_of_moves, 5)
        (x, _), _ = jax.lax.scan(move, (x, path(then, x)), moves)
        return index + 1, x, weights, then, log_z

    start = (0, center + scale * jr.normal(key, x.shape), jnp.full(num, -jnp.log(num)))
    running = lambda carry: carry[0] < num_steps
    return jax.lax.while_loop(running, step, (*start, jnp.zeros(()), jnp.zeros(())))[1]


def hmc(key: Array, x: Array, num_steps: int) -> Array:
    """Return points after BlackJAX's warm-up and its HMC, a chain each."""
    return _warmed(key, x, num_steps, "hmc", num_integration_steps=HMC_STEPS)


def nuts(key: Array, x: Array, num_steps: int) -> Array:
    """Return points after BlackJAX's warm-up and its NUTS, a chain each."""
    return _warmed(key, x, num_steps, "nuts")


def _warmed(key: Array, x: Array, num_steps: int, name: str, **options: Any) -> Array:
    import blackjax

    family: Any = getattr(blackjax, name)
    warm_up: Any = blackjax.window_adaptation(family, two_modes, **options)

    def chain(key: Array, point: Array) -> Array:
        warm_key, key = jr.split(key)
        (state, tuned), _ = warm_up.run(warm_key, point, num_steps=num_steps // 2)
        algorithm: Any = family(two_modes, **tuned)
        move = lambda state, key: (algorithm.step(key, state)[0], None)
        return jax.lax.scan(move, state, jr.split(key, num_steps))[0].position

    return jax.vmap(chain)(jr.split(key, len(x)), x)


LOOPS: dict[str, Callable[[Array, Array, int], Array]] = {
    "SVGD": svgd, "Langevin": langevin, "MALA": mala, "ParallelTempering": tempering,
    "AnnealedSMC": smc, "HMC": hmc, "NUTS": nuts,
}  # fmt: skip
