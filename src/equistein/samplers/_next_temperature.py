"""The next temperature of weighed particles, by their effective number."""

import jax
import jax.numpy as jnp
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float

from equistein._types import Scalar

_BISECTIONS = 40


def next_temperature(
    log_ratios: Float[Array, " particle"],
    log_weights: Float[Array, " particle"],
    beta: Scalar,
    ess_fraction: float,
) -> Scalar:
    r"""Return the largest $\beta' \le 1$ that keeps the effective sample size."""

    def enough(new):
        gains = (new - beta) * log_ratios
        first, second = log_weights + gains, log_weights + 2 * gains
        return jnp.exp(2 * logsumexp(first) - logsumexp(second)) >= ess_fraction

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
