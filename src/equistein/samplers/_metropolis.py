"""Metropolis moves: they leave a tempered density exactly invariant."""

from collections.abc import Callable
from typing import Any, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr

from equistein._types import Key, LogDensity, Point, Scalar

AnyWalker: TypeAlias = Any  # a module with a `point`


class Walker(eqx.Module):
    """A point with its log density and score."""

    point: Point
    value: Scalar
    score: Point


def walker_at(log_density: LogDensity, point: Point) -> Walker:
    """Return the walker that stands at `point`."""
    return Walker(point, *jax.value_and_grad(log_density)(point))


def adjusted_move(
    key: Key,
    walker_at: Callable[[Point], AnyWalker],
    tempered: Callable[[AnyWalker], tuple[Scalar, Point]],
    walker: AnyWalker,
    step_size: Scalar,
    project: Callable[[Point], Point],
) -> tuple[AnyWalker, Scalar]:
    r"""Make a Metropolis-adjusted Langevin move.

    The proposal is $y = x + \eta\, d(x) + \sqrt{2 \eta}\, \xi$ on the subspace of
    `project`, with a drift d that is the score or near it. One call of `walker_at`.

    Args:
        key: The source of randomness.
        walker_at: Returns the walker at a point: a module with that `point`.
        tempered: Returns a walker's log density and drift.
        walker: Where it stands.
        step_size: The step $\eta$.
        project: What puts a point onto the subspace.

    Returns:
        The new walker and the probability with which the proposal was accepted; one
        whose density is not finite never is.

    References:
        Roberts and Tweedie (1996), Exponential convergence of Langevin distributions.
    """
    noise_key, accept_key = jr.split(key)
    x = walker.point
    value, drift = tempered(walker)
    noise = project(jr.normal(noise_key, x.shape, x.dtype))
    noise = jnp.sqrt(2 * step_size) * noise
    there = walker_at(x + step_size * project(drift) + noise)
    new_value, new_drift = tempered(there)
    back = x - there.point - step_size * project(new_drift)
    bias = (jnp.sum(noise**2) - jnp.sum(back**2)) / (4 * step_size)
    return _accept(accept_key, there, walker, new_value - value + bias)


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

    The drift is $\beta s(x)$, shortened to `score_clip` where it is longer: then a
    walker comes down from where the density is steep, and the density that the move
    leaves invariant is exact as before.

    Returns:
        The new walker and the probability with which the proposal was accepted.

    References:
        Roberts and Tweedie (1996), for the truncated drift.
    """

    def tempered(walker):
        drift = inverse_temperature * walker.score
        if score_clip is not None:
            norm = jnp.sqrt(jnp.sum(drift**2))
            drift = drift * (score_clip / jnp.maximum(norm, score_clip))
        return inverse_temperature * walker.value, drift

    at = lambda point: walker_at(log_density, point)
    return adjusted_move(key, at, tempered, walker, step_size, project)


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
    key: Key, there: AnyWalker, here: AnyWalker, log_ratio: Scalar
) -> tuple[AnyWalker, Scalar]:
    finite = jnp.isfinite(log_ratio)
    chance = jnp.where(finite, jnp.exp(jnp.minimum(log_ratio, 0)), 0)
    taken = jr.uniform(key, (), chance.dtype) < chance
    pick = lambda new, old: jnp.where(taken, new, old)
    return jax.tree.map(pick, there, here), chance
