"""Weights along a path of densities, and the choice of particles by them."""

import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, Int

from equistein._check_arguments import check_finite_arguments
from equistein._types import Key, Scalar

_BISECTIONS = 40


def ess_fraction(log_weights: Float[Array, " n"]) -> Scalar:
    """Return the fraction of particles that equal weights would need, from 0 to 1."""
    shares = jax.nn.softmax(log_weights)
    return jnp.nan_to_num(1 / jnp.sum(shares**2), nan=0.0) / len(log_weights)


def next_temperature(
    log_ratios: Float[Array, " particle"],
    log_weights: Float[Array, " particle"],
    beta: Scalar,
    ess_fraction: float | Scalar,
) -> Scalar:
    r"""Return the largest $\beta' \le 1$ that keeps the effective sample size."""

    def enough(new):
        gains = (new - beta) * log_ratios
        first, second = log_weights + gains, log_weights + 2 * gains
        log_size = 2 * jax.nn.logsumexp(first) - jax.nn.logsumexp(second)
        return jnp.exp(log_size) >= ess_fraction

    def bisect(_, bounds):
        low, high = bounds
        middle = (low + high) / 2
        good = enough(middle)
        return jnp.where(good, middle, low), jnp.where(good, high, middle)

    one = jnp.ones_like(beta)
    low, high = jax.lax.fori_loop(0, _BISECTIONS, bisect, (beta, one))
    # Where so few particles are left that no step is short enough, the shortest is it.
    low = jnp.where(low > beta, low, high)
    return jnp.where(enough(one), one, low)


@check_finite_arguments
def systematic_resampling(
    key: Key, weights: Float[Array, " particle"]
) -> Int[Array, " particle"]:
    """Choose as many particles by their weights: equal steps from one random start.

    Each is chosen as often as its weight says, rounded down or up.
    """
    num = len(weights)
    ticks = jnp.arange(num, dtype=weights.dtype) + jr.uniform(key, (), weights.dtype)
    edges = jnp.cumsum(weights)
    chosen = jnp.searchsorted(edges / edges[-1], ticks / num)
    return jnp.minimum(chosen, num - 1).astype(int)
