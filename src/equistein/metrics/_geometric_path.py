"""The geometric path from a base to a density, and chains along it."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float

from equistein._types import Key, LogDensity, Point, Scalar
from equistein.metrics._reference import AbstractReference
from equistein.samplers import adjusted_move

_ACCEPTANCE = 0.6


class PathWalker(eqx.Module):
    """A point with the log densities and scores there, of the base and the density."""

    point: Point
    base_value: Scalar
    base_score: Point
    value: Scalar
    score: Point


class GeometricPath(eqx.Module):
    r"""The geometric path $b(x)^{1 - \beta} p(x)^\beta$, for $\beta$ from 0 to 1.

    A density of it is zero where p is; a walker there stays.
    """

    log_density: LogDensity
    base: AbstractReference

    def walker_at(self, point: Point) -> PathWalker:
        """Return the walker that stands at `point`."""
        value, score = jax.value_and_grad(self.log_density)(point)
        value = jnp.where(jnp.isfinite(value), value, -jnp.inf)
        there = jax.value_and_grad(self.base.log_density)(point)
        return PathWalker(point, *there, value, score)

    def start(self, key: Key, num: int) -> PathWalker:
        """Return walkers at samples of the base."""
        return jax.vmap(self.walker_at)(self.base.sample(key, num))

    def walk(
        self,
        key: Key,
        walkers: PathWalker,
        betas: Float[Array, " temperature"],
        step_sizes: Float[Array, " step"],
    ) -> tuple[PathWalker, Float[Array, " particle"]]:
        """Weigh and move walkers from the first to the last inverse temperature.

        Returns:
            The walkers and the logarithms of their weights.
        """

        def step(carry, inputs):
            walkers, log_weights = carry
            key, before, after, step_size = inputs
            ratio = walkers.value - walkers.base_value
            log_weights = log_weights + (after - before) * ratio
            walkers, _ = self._move(key, walkers, after, step_size)
            return (walkers, log_weights), None

        inputs = (jr.split(key, len(step_sizes)), betas[:-1], betas[1:], step_sizes)
        carry = (walkers, jnp.zeros_like(walkers.value))
        return jax.lax.scan(step, carry, inputs)[0]

    def tune(
        self, key: Key, walkers: PathWalker, betas: Float[Array, " step"]
    ) -> Float[Array, " step"]:
        """Return for each inverse temperature the step size that accepts 0.6."""
        inside = jnp.isfinite(walkers.value)

        def step(carry, inputs):
            walkers, log_size = carry
            key, beta = inputs
            walkers, chances = self._move(key, walkers, beta, jnp.exp(log_size))
            chance = jnp.sum(jnp.where(inside, chances, 0)) / jnp.maximum(
                jnp.sum(inside), 1
            ).astype(chances.dtype)
            log_size = log_size + 0.2 * (chance - _ACCEPTANCE)
            return (walkers, log_size), jnp.exp(log_size)

        spread = jnp.mean(jnp.var(walkers.point, axis=0))
        carry = (walkers, jnp.log(0.5 * spread))
        return jax.lax.scan(step, carry, (jr.split(key, len(betas)), betas))[1]

    def _move(
        self, key: Key, walkers: PathWalker, beta: Scalar, step_size: Scalar
    ) -> tuple[PathWalker, Float[Array, " particle"]]:
        """Move each walker; return the acceptance probabilities too."""

        def tempered(walker):
            value = (1 - beta) * walker.base_value + beta * walker.value
            return value, (1 - beta) * walker.base_score + beta * walker.score

        def move(key, walker):
            return adjusted_move(
                key, self.walker_at, tempered, walker, step_size, self.base.project
            )

        return jax.vmap(move)(jr.split(key, len(walkers.point)), walkers)
