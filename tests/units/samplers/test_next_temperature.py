"""The next temperature against the effective number that it leaves."""

import jax.numpy as jnp
import jax.random as jr
import numpy as np

from equistein.samplers._annealed_smc import next_temperature


def test_next_temperature_meets_the_conditional_effective_share(key):
    ratios, log_weights = 30 * jr.normal(key, (256,)), jnp.full(256, -jnp.log(256.0))
    beta = next_temperature(ratios, log_weights, jnp.array(0.2), 0.9)
    weights = np.exp((beta - 0.2) * ratios)
    assert np.isclose(weights.mean() ** 2 / (weights**2).mean(), 0.9, atol=1e-6)
    flat = next_temperature(0.01 * ratios, log_weights, jnp.array(0.2), 0.9)
    assert flat == 1
