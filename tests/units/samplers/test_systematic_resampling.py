"""Systematic resampling counts each particle by its weight."""

import jax.numpy as jnp
import jax.random as jr
import numpy as np

from equistein.samplers._annealed_smc import systematic_resampling


def test_systematic_choice_is_by_weight(key):
    weights = jnp.array([0.5, 0.0, 0.3, 0.2])
    expected = np.repeat(np.asarray(weights), 5) / 5
    counts = np.zeros(20)
    for k in jr.split(key, 200):
        chosen = np.asarray(systematic_resampling(k, jnp.repeat(weights, 5) / 5))
        counts += np.bincount(chosen, minlength=20)
        each = np.bincount(chosen, minlength=20)
        assert np.all(np.abs(each - 20 * expected) < 1)
    assert np.allclose(counts / 200 / 20, expected, atol=0.02)
    assert np.all(counts[5:10] == 0)
