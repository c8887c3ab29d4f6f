"""Effective sample sizes, of chains and of weights."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from equistein.metrics import reweight, summarize_chains

arviz = pytest.importorskip("arviz_stats.base.array").array_stats


def autoregressive(key, correlation, shape=(40, 2_000)):
    noise = jr.normal(key, shape)

    def step(x, e):
        x = correlation * x + jnp.sqrt(1 - correlation**2) * e
        return x, x

    _, chains = jax.lax.scan(step, noise[:, 0], noise.T)
    return chains.T


@pytest.mark.parametrize("correlation", [-0.5, 0.0, 0.5, 0.9])
def test_effective_size_is_that_of_correlated_chains(correlation, key):
    """Of antithetic ones it is above their number of draws."""
    chains = autoregressive(key, correlation)
    exact = chains.size * (1 - correlation) / (1 + correlation)
    found = summarize_chains(chains)
    assert found["bulk"] == pytest.approx(exact, rel=0.1)
    assert found["error"] == pytest.approx(exact**-0.5, rel=0.1)


def test_the_numbers_are_those_of_arviz(key):
    chains = np.asarray(autoregressive(key, 0.7, (4, 100)))
    found = summarize_chains(np.stack([chains, chains**3], axis=-1))
    assert found["reason"] == ""
    for index, values in enumerate((chains, chains**3)):
        assert found["mean"][index] == pytest.approx(values.mean())
        assert found["error"][index] == pytest.approx(arviz.mcse(values))
        assert found["bulk"][index] == pytest.approx(arviz.ess(values))
        tail = arviz.ess(values, method="tail", prob=(0.05, 0.95))
        assert found["tail"][index] == pytest.approx(tail)
        assert found["r_hat"][index] == pytest.approx(arviz.rhat(values))


def test_what_is_not_defined_is_nan_with_a_reason(key):
    chains = jr.normal(key, (4, 50, 2)).at[..., 1].set(2.0)
    found = summarize_chains(chains)
    assert "constant" in found["reason"]
    assert np.isfinite(found["r_hat"]).tolist() == [True, False]
    assert np.isnan(found["bulk"][1])
    assert np.isnan(found["error"][1])
    assert found["mean"][1] == 2
    short = summarize_chains(chains[:, :3])
    assert "3 draws" in short["reason"]
    assert np.all(np.isnan(short["r_hat"]))
    assert np.all(np.isnan(short["tail"]))


def test_effective_size_of_weights_by_hand():
    points, flat = jnp.arange(4.0)[:, None], lambda x: 0.0 * jnp.sum(x)
    assert np.isclose(reweight(points, flat, flat).effective_sample_size, 4)
    found = reweight(points, flat, lambda x: jnp.where(x[0] == 3, jnp.log(3.0), 0.0))
    assert np.allclose(found.weights, [1 / 6, 1 / 6, 1 / 6, 1 / 2])
    assert np.isclose(found.effective_sample_size, 3)
