"""Metropolis moves: they leave a tempered density exactly invariant."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr

from equistein._types import Key, LogDensity, Point, Scalar


class Walker(eqx.Module):
    """A point with its log density and score."""

    point: Point
    value: Scalar
    score: Point


def walker_at(log_density: LogDensity, point: Point) -> Walker:
    """Return the walker that stands at `point`."""
    return Walker(point, *jax.value_and_grad(log_density)(point))


def langevin_move(
    key: Key,
    log_density: LogDensity,
    walker: Walker,
    inverse_temperature: Scalar,
    step_size: Scalar,
    project: Callable[[Point], Point],
    score_clip: float | Scalar | None,
) -> tuple[Walker, Scalar]:
    r"""Make a Metropolis-adjusted Langevin move of $p^\beta$.

    The proposal is $y = x + \eta \beta s(x) + \sqrt{2 \eta}\, \xi$ on the subspace of
    `project`, with $\beta s$ shortened to `score_clip` where it is longer: then a
    walker comes down from where the density is steep, and the law is exact as before.
    One evaluation of the score.

    Returns:
        The new walker and the probability with which the proposal was accepted; one
        whose density is not finite never is.

    References:
        Roberts and Tweedie (1996), Exponential convergence of Langevin distributions,
        also for the truncated drift.
    """
    noise_key, accept_key = jr.split(key)
    x = walker.point

    def drift(score):
        tempered = inverse_temperature * score
        if score_clip is not None:
            norm = jnp.sqrt(jnp.sum(tempered**2))
            tempered = tempered * (score_clip / jnp.maximum(norm, score_clip))
        return step_size * project(tempered)

    noise = project(jr.normal(noise_key, x.shape, x.dtype))
    noise = jnp.sqrt(2 * step_size) * noise
    there = walker_at(log_density, x + drift(walker.score) + noise)
    back = x - there.point - drift(there.score)
    bias = (jnp.sum(noise**2) - jnp.sum(back**2)) / (4 * step_size)
    gain = inverse_temperature * (there.value - walker.value)
    return _accept(accept_key, there, walker, gain + bias)


def jump_move(
    key: Key,
    log_density: LogDensity,
    walker: Walker,
    inverse_temperature: Scalar,
    step_size: Scalar,
    project: Callable[[Point], Point],
) -> tuple[Walker, Scalar]:
    """Move one particle of a cloud far: a normal step of `step_size` a coordinate.

    Returns:
        The new walker and the probability with which the proposal was accepted.
    """
    which_key, move_key, accept_key = jr.split(key, 3)
    x = walker.point
    which = jr.randint(which_key, (), 0, len(x))
    move = step_size * jr.normal(move_key, x.shape[1:], x.dtype)
    there = walker_at(log_density, project(x.at[which].add(move)))
    gain = inverse_temperature * (there.value - walker.value)
    return _accept(accept_key, there, walker, gain)


def _accept(
    key: Key, there: Walker, here: Walker, log_ratio: Scalar
) -> tuple[Walker, Scalar]:
    finite = jnp.isfinite(there.value) & jnp.isfinite(log_ratio)
    chance = jnp.where(finite, jnp.exp(jnp.minimum(log_ratio, 0)), 0)
    taken = jr.uniform(key, (), chance.dtype) < chance
    pick = lambda new, old: jnp.where(taken, new, old)
    return jax.tree.map(pick, there, here), chance
