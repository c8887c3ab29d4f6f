"""Metropolis moves: they leave a tempered density exactly invariant."""

from collections.abc import Callable
from typing import Any, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Bool, Float

from equistein._types import Key, LogDensity, Particles, Point, Scalar

AnyWalker: TypeAlias = Any  # a module with a `point`


class Walker(eqx.Module):
    """A point with its log density and score."""

    point: Point
    value: Scalar
    score: Point


def walker_at(log_density: LogDensity, point: Point) -> Walker:
    """Return the walker that stands at `point`."""
    return Walker(point, *jax.value_and_grad(log_density)(point))


@eqx.filter_jit
def has_density(
    log_density: LogDensity, points: Particles, values: Float[Array, " particle"]
) -> Bool[Array, ""]:
    """Return whether `values` are the log densities of some points, but for rounding.

    Values that were computed elsewhere may differ in their last digits.
    """
    fresh = jax.vmap(log_density)(points)
    fresh = jnp.where(jnp.isfinite(fresh), fresh, -jnp.inf)
    tolerance = jnp.finfo(values.dtype).eps ** 0.75
    return jnp.allclose(fresh, values, rtol=tolerance, atol=tolerance)


def adjusted_move(
    key: Key,
    walker_at: Callable[[Point], AnyWalker],
    tempered: Callable[[AnyWalker], tuple[Scalar, Point]],
    walker: AnyWalker,
    step_size: Scalar,
    project: Callable[[Point], Point],
) -> tuple[AnyWalker, Scalar, Bool[Array, ""]]:
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
        The new walker, the probability with which the proposal was accepted; one
        whose density is not finite never is; and whether the density was a number.

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
    moved, chance = _accept(accept_key, there, walker, new_value - value + bias)
    return moved, chance, ~jnp.isnan(new_value)


def langevin_move(
    key: Key,
    log_density: LogDensity,
    walker: Walker,
    inverse_temperature: Scalar,
    step_size: Scalar,
    project: Callable[[Point], Point],
    score_clip: float | Scalar | None,
) -> tuple[Walker, Scalar, Bool[Array, ""]]:
    r"""Make a Metropolis-adjusted Langevin move of $p^\beta$.

    The drift is $\beta s(x)$, shortened to `score_clip` where it is longer: then a
    walker comes down from where the density is steep, and the density that the move
    leaves invariant is exact as before.

    Returns:
        The new walker, the probability with which the proposal was accepted, and
        whether its density was a number.

    References:
        Roberts and Tweedie (1996), for the truncated drift.
    """

    def tempered(walker):
        drift = inverse_temperature * walker.score
        return inverse_temperature * walker.value, shortened(drift, score_clip)

    at = lambda point: walker_at(log_density, point)
    return adjusted_move(key, at, tempered, walker, step_size, project)


def shortened(drift: Point, longest: float | Scalar | None) -> Point:
    """Return a drift, shortened to the length `longest` where it is longer."""
    if longest is None:
        return drift
    norm = jnp.sqrt(jnp.sum(drift**2))
    return drift * (longest / jnp.maximum(norm, longest))


def _accept(
    key: Key, there: AnyWalker, here: AnyWalker, log_ratio: Scalar
) -> tuple[AnyWalker, Scalar]:
    finite = jnp.isfinite(log_ratio)
    chance = jnp.where(finite, jnp.exp(jnp.minimum(log_ratio, 0)), 0)
    taken = jr.uniform(key, (), chance.dtype) < chance
    pick = lambda new, old: jnp.where(taken, new, old)
    return jax.tree.map(pick, there, here), chance
