"""The covariance of a population, against numbers made with NumPy."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from equistein.kernels import Preconditioner

by_width = eqx.filter_jit(Preconditioner.by_width)
SCALES = np.geomspace(1, 500, 6)
TURN = np.linalg.qr(np.random.default_rng(0).normal(size=(6, 6)))[0]


@eqx.filter_jit
def updated(metric, x):
    return metric.updated(metric.sums(x), len(x))


def fit(x):
    metric = by_width(x)
    for _ in range(3):
        metric = updated(metric, x)
    return metric


def rotated(key, num):
    return jr.normal(key, (num, 6)) * SCALES[None] @ TURN.T + 7.0


def test_a_rotated_density_is_standardized_and_the_map_is_consistent(key):
    x = rotated(key, 4_000)
    found = fit(x)
    z = np.asarray(jax.jit(jax.vmap(found.whiten))(x))
    assert np.allclose(z.mean(axis=0), 0, atol=0.05)
    assert np.allclose(np.cov(z.T), np.eye(6), atol=0.05)
    assert np.allclose(found.center[None] + jax.jit(jax.vmap(found.push))(z), x)
    assert np.isclose(found.log_det, np.sum(np.log(SCALES)), atol=0.1)
    assert np.allclose(found.pull(x[0]), found.factor.T @ x[0])
    # The broken twin: widths along the axes leave the correlations.
    rough = jax.jit(jax.vmap(by_width(x).whiten))(x)
    assert not np.allclose(np.cov(np.asarray(rough).T), np.eye(6), atol=0.3)


def test_updates_follow_a_density_that_is_much_wider(key):
    metric, x = Preconditioner.unit(jnp.zeros(6)), rotated(key, 2_000)
    for _ in range(4):
        metric = updated(metric, x)
    assert np.allclose(metric.covariance, np.cov(x.T), rtol=0.2, atol=500)
    assert np.allclose(metric.growth, 1, atol=0.1)


def test_weights_count_as_copies_and_few_points_change_little(key):
    x = jr.normal(key, (30, 2)) * jnp.array([[1.0, 3.0]])
    weights = jnp.asarray(np.arange(30) % 3 + 1.0)
    copies = np.repeat(x, np.arange(30) % 3 + 1, axis=0)
    copies = jnp.asarray(copies)
    metric = Preconditioner.unit(jnp.zeros(2))
    weighted, repeated = metric.sums(x, weights), metric.sums(copies)
    assert np.allclose(weighted.squares, repeated.squares)
    assert np.allclose(weighted.total, repeated.total)
    assert np.all(updated(metric, x[:1]).growth > 0.3)
    empty = updated(metric, x[:0])
    assert np.allclose(empty.factor, jnp.eye(2))


def test_a_point_far_out_does_not_make_the_covariance(key):
    x = jr.normal(key, (500, 3)).at[0].set(300.0)
    metric = Preconditioner.unit(jnp.zeros(3))
    found = updated(metric, x)
    assert np.all(np.asarray(found.growth) < 3)
    assert x.std() > 8  # the broken twin: without weights it would


def test_many_dimensions_have_a_diagonal_and_clouds_none(key):
    x = jr.normal(key, (64, 200)) * jnp.linspace(1, 9, 200)[None]
    found = fit(x)
    assert found.factor.shape == (200,)
    assert np.allclose(found.factor, np.linspace(1, 9, 200), rtol=0.4)
    with pytest.raises(ValueError, match="Flatten each point"):
        fit(x.reshape(64, 20, 10))
