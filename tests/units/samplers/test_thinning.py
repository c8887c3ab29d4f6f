import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from equistein.metrics import wasserstein_1d
from equistein.samplers import thin


def errors(chosen, pool):
    """Return the errors of the means of the features, and of the law of the first."""
    means = jnp.abs(jnp.mean(pool[chosen], axis=0) - jnp.mean(pool, axis=0))
    return float(jnp.max(means)), float(wasserstein_1d(pool[chosen, 0], pool[:, 0]))


@pytest.mark.slow
def test_thinned_points_represent_the_pool_better_than_chance(key):
    pool = jr.normal(key, (1_600, 5))
    chosen = thin(jr.key(5), pool, pool[:, 0], 100)
    assert len(set(np.asarray(chosen).tolist())) == 100
    mean, law = errors(chosen, pool)
    by_chance = [
        errors(jr.choice(k, 1_600, (100,), replace=False), pool)
        for k in jr.split(jr.key(1), 20)
    ]
    means, laws = np.array(by_chance).T
    assert mean < means.min() / 1.5
    assert law < laws.min() / 1.5


def test_outliers_keep_their_share():
    # One point in sixteen is far away in a feature that costs much.
    far = jnp.arange(1_600) % 16 == 7
    features = jnp.where(far, 30.0, 0.0)[:, None] * jnp.ones((1, 3))
    order = jr.uniform(jr.key(3), (1_600,))
    share = jnp.mean(far[thin(jr.key(5), features, order, 100)])
    assert abs(share - 1 / 16) < 0.01  # binomial error 0.024


# 199 points to 100: no halving, and all but one of the pairs are left out.
@pytest.mark.parametrize(("num_points", "num"), [(160, 10), (199, 100), (50, 12)])
def test_every_point_has_the_same_chance(num_points, num):
    features, order = jnp.zeros((num_points, 1)), jnp.arange(float(num_points))
    chosen = jax.vmap(lambda key: thin(key, features, order, num))(
        jr.split(jr.key(0), 2_000)
    )
    shares = np.bincount(np.ravel(chosen), minlength=num_points) / 2_000
    # The share of each point is num / num_points, with a binomial error.
    expected = num / num_points
    assert np.max(np.abs(shares - expected)) < 5 * (expected / 2_000) ** 0.5


def test_all_points_are_kept_where_all_are_asked_for(key):
    features = jr.normal(key, (16_000, 1), jnp.float32)
    chosen = thin(jr.key(1), features, features[:, 0], 16_000)
    assert len(np.unique(chosen)) == 16_000


@pytest.mark.parametrize(("num_points", "num"), [(7, 7), (7, 1), (7, 3), (50, 12)])
def test_any_numbers_work(num_points, num, key):
    features = jr.normal(key, (num_points, 2))
    chosen = thin(jr.key(5), features, features[:, 0], num)
    assert chosen.shape == (num,)
    assert len(set(np.asarray(chosen).tolist())) == num
    assert np.all(np.diff(np.asarray(features[chosen, 0])) >= 0)


def test_thinning_refuses_what_does_not_fit(key, unchecked):
    features = jr.normal(key, (5, 2))
    for num in (0, 6):
        with pytest.raises(ValueError, match="`num`"):
            thin(jr.key(5), features, features[:, 0], num)
    with pytest.raises(ValueError, match="`order`|4 numbers"):
        thin(jr.key(5), features, features[:4, 0], 2)
