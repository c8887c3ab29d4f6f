import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
import scipy.stats

from equistein.groups import PointCloud
from equistein.samplers import Normal


def test_normal_is_scipy_s(key):
    center = jnp.array([1.0, -2.0])
    base = Normal(center, 0.7)
    points = jr.normal(key, (5, 2))
    exact = scipy.stats.multivariate_normal(center, 0.7**2 * np.eye(2))
    assert np.allclose(jax.vmap(base.log_density)(points), exact.logpdf(points))


def test_normal_on_clouds_integrates_to_one_over_their_subspace():
    base = Normal(jnp.zeros((2, 1)), 0.7, PointCloud((0, 0), 1))
    # Centered pairs on the line are (t, -t) / sqrt(2) for the length t.
    ticks = jnp.linspace(-8.0, 8.0, 2_001)
    pairs = jnp.stack([ticks, -ticks], axis=1)[..., None] / jnp.sqrt(2.0)
    density = jnp.exp(jax.jit(jax.vmap(base.log_density))(pairs))
    assert abs(float(jnp.sum(density)) * 16 / 2_000 - 1) < 1e-9


def test_normal_on_clouds_counts_the_dimensions_left(key):
    base = Normal(jnp.zeros((3, 2)), 2.0, PointCloud("COO", 2))
    assert base.dim == 4
    assert base.project(jr.normal(key, (3, 2))).shape == (3, 2)
    height = -0.5 * 4 * np.log(2 * np.pi * 2.0**2)
    assert np.isclose(base.log_density(jnp.zeros((3, 2))), height)
    # The density is that of the projected point.
    assert np.isclose(base.log_density(jnp.ones((3, 2))), height)


@pytest.mark.parametrize(("scale", "passes"), [(1.0, True), (1.05, False)])
def test_normal_samples_have_the_variance_and_the_entropy(scale, passes, key):
    base = Normal(jnp.zeros((3, 2)), 2.0, PointCloud("COO", 2))
    points = scale * base.sample(key, 20_000)
    assert np.allclose(np.mean(points, axis=1), 0, atol=1e-12)
    squares = np.sum(np.asarray(points) ** 2, axis=(1, 2)) / 2.0**2
    # A chi-square law of 4 degrees of freedom.
    standard_error = (2 * 4 / 20_000) ** 0.5
    assert (abs(squares.mean() - 4) < 5 * standard_error) == passes
    assert (scipy.stats.kstest(squares, "chi2", (4,)).pvalue > 1e-6) == passes


def test_normal_takes_the_precision_of_the_points(key):
    base = Normal(jnp.zeros(2, jnp.float32), 0.7)
    assert base.sample(key, 3).dtype == jnp.float32
    assert base.log_density(jnp.zeros(2, jnp.float32)).dtype == jnp.float32


def test_a_mean_off_the_subspace_is_refused():
    center = jnp.array([[1.0, 0.0], [1.0, 0.0]])
    with pytest.raises(ValueError, match="`center`|mean|origin"):
        Normal(center, 1.0, PointCloud((0, 0), 2))
    assert Normal(center, 1.0).dim == center.size


@pytest.mark.parametrize("num", [0, -1, 2.0, True])
def test_a_wrong_number_of_samples_is_refused(num, key, unchecked):
    with pytest.raises(ValueError, match="`num`"):
        Normal(jnp.zeros(3), 0.7).sample(key, num)
