"""Simulation-based calibration: the truth is one more draw of its posterior.

References:
    Talts, Betancourt, Simpson, Vehtari and Gelman (2018), Validating Bayesian
    inference algorithms with simulation-based calibration.
"""

from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
import scipy.stats
from jax.scipy.stats import gamma, norm, poisson
from jaxtyping import Array

from equistein.posteriors import AbstractConstraint, Parameters, Positive, Posterior
from equistein.samplers import suppress_warnings

NUM_DATA, NUM_CHAINS, NUM_BINS = 80, 19, 5
NOISE = 0.5


class Unordered(eqx.Module):
    """Two labels, each with a normal mean and a Gamma rate, both seen with noise.

    Normal and Poisson numbers are seen as pairs, but not which pair is whose.
    """

    heights: Array
    counts: Array

    def __call__(self, tree):
        mean, rate = tree["mean"], tree["rate"]
        prior = jnp.sum(norm.logpdf(mean) + gamma.logpdf(rate, 2.0))

        def likelihood(order):
            heights = norm.logpdf(self.heights[order], mean, NOISE)
            return jnp.sum(heights + poisson.logpmf(self.counts[order], rate))

        both = likelihood(jnp.array([0, 1])), likelihood(jnp.array([1, 0]))
        return prior + jnp.logaddexp(*both)


class WithoutVolume(AbstractConstraint):
    """A positive number whose change of variables was forgotten."""

    meaning: ClassVar[str] = "numbers > 0"

    def forward(self, free):
        return jnp.exp(free)

    def inverse(self, value):
        return jnp.log(value)

    def log_jacobian(self, free):
        return jnp.zeros((), free.dtype)

    def allows(self, value):
        return jnp.all(value > 0)


def simulated(key):
    mean_key, rate_key, *keys = jr.split(key, 4)
    mean, rate = jr.normal(mean_key, (2,)), jr.gamma(rate_key, 2.0, (2,))
    heights = mean + NOISE * jr.normal(keys[0], (2,))
    counts = jr.poisson(keys[1], rate).astype(float)
    return {"mean": mean, "rate": rate}, Unordered(heights, counts)


def numbers(mean, rate):
    """What no label enters: a sum, an extreme, and what binds the two together."""
    return jnp.stack(
        [
            jnp.sum(mean, -1),
            jnp.sum(rate, -1),
            jnp.max(mean, -1),
            jnp.sum(mean * rate, -1),
        ]
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("constraint", "passes"), [(Positive(), True), (WithoutVolume(), False)]
)
def test_ranks_of_the_truth_are_uniform(constraint, passes):
    parameters = Parameters(
        {"mean": jnp.zeros(2), "rate": jnp.ones(2)},
        exchangeable={"mean": 0, "rate": 0}, constraints={"rate": constraint},
    )  # fmt: skip
    ranks = []
    for i in range(NUM_DATA):
        truth, density = simulated(jr.fold_in(jr.key(7), i))
        with suppress_warnings("halves of the run"):  # in so few steps, of log Z
            drawn = Posterior(density, parameters).run(
                jr.fold_in(jr.key(8), i), num_chains=NUM_CHAINS, num_steps=160,
                num_draws=1, num_temperatures=5, check=False,
            ).named  # fmt: skip
        theirs = numbers(drawn["mean"][:, 0], drawn["rate"][:, 0])
        ranks.append(np.sum(theirs < numbers(**truth)[:, None], axis=1))
    bins = np.stack(ranks, axis=1) * NUM_BINS // (NUM_CHAINS + 1)
    counts = np.stack([np.bincount(row, minlength=NUM_BINS) for row in bins])
    chances = scipy.stats.chisquare(counts, axis=1).pvalue
    # Four tests: the least of as many chances is below 0.001 once in 250 times.
    assert (chances.min() > 1e-3) == passes, counts
