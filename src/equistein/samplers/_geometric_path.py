"""The geometric path from a reference to a density."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from equistein._gate import gate, keyed
from equistein._types import Key, LogDensity, Point, Scalar
from equistein.samplers._reference import AbstractReference


class PathWalker(eqx.Module):
    """A point with the log densities and scores there, of the base and the density.

    Nothing in it depends on a temperature, so it stays valid at another one.
    """

    point: Point
    base_value: Scalar
    base_score: Point
    value: Scalar
    score: Point

    @property
    def log_ratio(self) -> Float[Array, " *batch"]:
        r"""The $\log p(x) / b(x)$, the slope of the path's log density in $\beta$."""
        return self.value - self.base_value


def unvalued(points: Float[Array, "row column *shape"]) -> PathWalker:
    """Return walkers at points in two axes, before a density is known."""
    zero, blank = jnp.zeros(points.shape[:2], points.dtype), jnp.zeros_like(points)
    return PathWalker(points, zero, blank, zero, blank)


class Flat(eqx.Module):
    r"""No reference: the path is $p^\beta$, and nothing is known of its hot end."""

    def log_density(self, point: Point) -> Scalar:
        return jnp.zeros((), point.dtype)


@gate
class GeometricPath(eqx.Module):
    r"""The geometric path $b(x)^{1 - \beta} p(x)^\beta$, for $\beta$ from 0 to 1.

    Where p is zero, so is every density of the path with $\beta > 0$.
    """

    log_density: LogDensity
    base: AbstractReference | Flat

    def walker_at(self, point: Point) -> PathWalker:
        """Return the walker that stands at `point`."""
        walker = self.proposed_at(point)
        value = jnp.where(jnp.isfinite(walker.value), walker.value, -jnp.inf)
        return eqx.tree_at(lambda w: w.value, walker, value)

    def proposed_at(self, point: Point) -> PathWalker:
        """Return the walker at a point, whose log density may be NaN."""
        there = jax.value_and_grad(self.base.log_density)(point)
        return PathWalker(point, *there, *jax.value_and_grad(self.log_density)(point))

    @keyed
    def start(self, key: Key, num: int, dtype: Any = None) -> PathWalker:
        """Return walkers at samples of the base, of its precision or of another."""
        assert isinstance(self.base, AbstractReference)
        points = self.base.sample(key, num)
        return jax.vmap(self.walker_at)(points.astype(dtype or points.dtype))

    def tempered(self, walker: PathWalker, beta: Scalar) -> tuple[Scalar, Point]:
        r"""Return the log density and the score at $\beta$, where a walker stands."""
        value = (1 - beta) * walker.base_value + beta * walker.value
        return value, (1 - beta) * walker.base_score + beta * walker.score

    def at(self, beta: Scalar) -> LogDensity:
        r"""Return the log density at $\beta$ as a function of one point."""

        def log_density(point: Point) -> Scalar:
            base = self.base.log_density(point)
            return (1 - beta) * base + beta * self.log_density(point)

        return log_density


def ess_fraction(log_weights: Float[Array, " n"]) -> Scalar:
    """Return the fraction of particles that equal weights would need, from 0 to 1."""
    shares = jax.nn.softmax(log_weights)
    return jnp.nan_to_num(1 / jnp.sum(shares**2), nan=0.0) / len(log_weights)
