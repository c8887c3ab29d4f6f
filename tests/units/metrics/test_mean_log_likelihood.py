import jax.numpy as jnp
import numpy as np

from equistein.metrics import mean_log_likelihood


def test_mean_log_likelihood_by_hand():
    points = jnp.array([[1.0, 1.0], [2.0, 0.0]])
    value = mean_log_likelihood(lambda x: -0.5 * jnp.sum(x**2), points)
    assert np.isclose(value, -(1 + 2) / 2)
