import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from equistein.metrics import effective_sample_size, reweight


def autoregressive(key, correlation, shape=(400, 200)):
    noise = jr.normal(key, shape)

    def step(x, e):
        x = correlation * x + jnp.sqrt(1 - correlation**2) * e
        return x, x

    _, chains = jax.lax.scan(step, noise[:, 0], noise.T)
    return chains.T


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.9])
def test_effective_size_is_that_of_correlated_chains(correlation, key):
    chains = autoregressive(key, correlation)
    exact = chains.size * (1 - correlation) / (1 + correlation)
    assert abs(effective_sample_size(chains) / exact - 1) < 5 * (2 / 400) ** 0.5


def test_effective_size_of_frozen_chains_is_their_number(key):
    frozen = jnp.broadcast_to(jr.normal(key, (400, 1)), (400, 50))
    assert np.isclose(effective_sample_size(frozen), 400, rtol=0.01)


def test_effective_size_of_weights_by_hand():
    points, flat = jnp.arange(4.0)[:, None], lambda x: 0.0 * jnp.sum(x)
    assert np.isclose(reweight(points, flat, flat).effective_sample_size, 4)
    found = reweight(points, flat, lambda x: jnp.where(x[0] == 3, jnp.log(3.0), 0.0))
    assert np.allclose(found.weights, [1 / 6, 1 / 6, 1 / 6, 1 / 2])
    assert np.isclose(found.effective_sample_size, 3)


def test_effective_size_needs_chains(key):
    with pytest.raises(ValueError, match="at least two chains"):
        effective_sample_size(jr.normal(key, (1, 50)))
