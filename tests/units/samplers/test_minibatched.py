import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
import pytest

import equistein as es

NUM = 2_000
SPREAD = 0.5


def log_prior(mean):
    return -0.5 * jnp.sum(mean**2)


def log_likelihood(mean, datum):
    return -0.5 * jnp.sum((datum - mean) ** 2) / SPREAD**2


@pytest.fixture
def data():
    noise = np.random.default_rng(5).normal(size=(NUM, 2))
    return jnp.asarray(np.array([1.0, -2.0]) + SPREAD * noise)


@pytest.fixture
def posterior(data):
    return es.Minibatched(log_prior, log_likelihood, data, batch_size=50)


def exact(data):
    """Return the mean and the variance of a coordinate of the posterior."""
    precision = 1 + NUM / SPREAD**2
    return np.sum(np.asarray(data), axis=0) / SPREAD**2 / precision, 1 / precision


def error_in_sd(estimates, truth):
    """Return how many standard errors a mean of scores is from the truth."""
    error = np.std(estimates, axis=0, ddof=1) / len(estimates) ** 0.5
    return np.max(np.abs(np.mean(estimates, axis=0) - truth) / error)


def test_with_all_data_it_is_the_log_posterior(posterior, data, key):
    point = jr.normal(key, (2,))
    value = log_prior(point) + jnp.sum(jax.vmap(log_likelihood, (None, 0))(point, data))
    assert posterior(point) == pytest.approx(float(value), rel=1e-10)


def test_the_score_of_a_batch_is_right_on_average(posterior, key):
    point = jnp.array([0.7, -1.0])
    score = lambda key: jax.grad(posterior.at(key))(point)
    estimates = jax.vmap(score)(jr.split(key, 4_000))
    truth = jax.grad(posterior)(point)
    assert error_in_sd(estimates, truth) < 4
    wrong = estimates * posterior.batch_size / NUM  # not scaled to all data
    assert error_in_sd(wrong, truth) > 10
    noise = float(jnp.std(estimates, axis=0).mean())
    assert float(posterior.score_noise(key, point[None], 2_000)) == pytest.approx(
        noise, rel=0.05
    )


def test_the_noise_of_batches_heats_langevin_steps_as_it_says(posterior, data, key):
    """Each run of one particle has batches of its own."""
    mean, variance = exact(data)
    step, num = 0.1 * variance, 1_000
    sampler = es.Langevin(step_size=float(step))
    starts = jnp.broadcast_to(jnp.asarray(mean), (num, 1, 2))
    keys = jr.split(key, num)

    def warmth(density):
        """Return the mean square, and its error, over that of the step by itself."""
        samples = es.run(keys, sampler, density, starts, num_steps=60, check=False)
        squares = (np.asarray(samples.particles)[:, 0] - mean) ** 2
        squares = squares * (1 - step / (2 * variance)) / variance
        return np.mean(squares), np.std(squares) / squares.size**0.5

    noise = posterior.score_noise(key, jnp.asarray(mean)[None], 2_000)
    heat = float(1 + step * noise**2 / 2)
    found, error = warmth(posterior)
    assert abs(found - heat) < 4 * error
    assert abs(1 - heat) > 10 * error  # what a chain without noise would show


def test_svgd_finds_the_posterior_by_batches(posterior, data, key):
    mean, variance = exact(data)
    sampler = es.SVGD(es.kernels.RBF(), optax.adam(0.02))
    starts = jr.normal(key, (40, 2))
    samples = es.run(key, sampler, posterior, starts, num_steps=600, record_every=1)
    assert np.isfinite(samples.history["log_density"]).all()
    assert np.abs(np.mean(samples.particles, axis=0) - mean).max() < 0.1
    again = es.run(key, sampler, posterior, starts, num_steps=600, record_every=50)
    assert np.allclose(again.particles, samples.particles, atol=1e-10)


def test_data_may_be_a_tree(key):
    inputs, outputs = jr.normal(key, (30, 2)), jnp.ones(30)
    fit = lambda weights, datum: -((datum[0] @ weights - datum[1]) ** 2)
    regression = es.Minibatched(log_prior, fit, (inputs, outputs), batch_size=5)
    assert regression.num_data == 30
    assert jnp.isfinite(regression.at(key)(jnp.ones(2)))


@pytest.mark.parametrize(
    "sampler", [es.MALA(0.1), es.ParallelTempering(es.MALA(0.1), num_temperatures=2)]
)
def test_samplers_that_compare_densities_are_refused(sampler, posterior):
    with pytest.raises(ValueError, match="take SVGD or Langevin"):
        es.run(jr.key(0), sampler, posterior, jnp.ones((4, 2)), num_steps=1)
