import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
import scipy.stats
from jax.scipy.special import logsumexp

from equistein.groups import PointCloud, Trivial
from equistein.metrics import annealed_importance_sampling, Normal

SHORT = {"num_particles": 256, "num_steps": 300}


def wide(shape=(2,), scale=3.0, group=Trivial(), dtype=jnp.float32):  # noqa: B008
    return Normal(jnp.zeros(shape, dtype), scale, group)


def normal(x):
    """A normal density of width 0.5 around (1, -1), times a hundred."""
    center = jnp.array([1.0, -1.0], x.dtype)
    return -0.5 * jnp.sum((x - center) ** 2) / 0.5**2 + jnp.log(100.0).astype(x.dtype)


def mixture(x):
    """Three parts of four at (2, 0), one at (-2, 0), each of width 0.5."""
    centers = jnp.array([[2.0, 0.0], [-2.0, 0.0]], x.dtype)
    weights = jnp.log(jnp.array([0.75, 0.25], x.dtype))
    squares = jnp.sum((x[None] - centers) ** 2, axis=1) / 0.5**2
    return logsumexp(weights - 0.5 * squares)


EXACT = {
    normal: np.log(100 * 2 * np.pi * 0.5**2),
    mixture: np.log(2 * np.pi * 0.5**2),
}


@pytest.mark.parametrize("density", EXACT, ids=lambda f: f.__name__)
def test_log_z_is_within_its_error(density, key):
    for one in jr.split(key, 4):
        found = annealed_importance_sampling(one, density, wide(), **SHORT)
        assert found.value.dtype == jnp.float32
        assert abs(float(found.value) - EXACT[density]) < float(found.error)
        assert found.error < 0.5
        assert found.num_particles == 256
        assert 50 < found.effective_sample_size <= 256.01
        assert np.isclose(found.value, (found.forward + found.backward) / 2)


@pytest.mark.parametrize("density", EXACT, ids=lambda f: f.__name__)
def test_one_step_from_a_narrow_base_misses_or_says_so(density, key):
    # The broken twin: no annealing, from where the density is not.
    found = annealed_importance_sampling(
        key, density, wide(scale=0.1), num_particles=256, num_steps=1
    )
    missed = abs(float(found.value) - EXACT[density])
    assert missed > 0.5
    assert found.effective_sample_size < 50 or missed > float(found.error)


def test_the_density_itself_as_base_is_exact(key):
    base = wide(scale=0.7)
    found = annealed_importance_sampling(
        key, lambda x: base.log_density(x) + 2.0, base, num_particles=16, num_steps=3
    )
    assert np.isclose(found.value, 2.0, atol=1e-5)
    assert found.error < 1e-4
    assert np.isclose(found.effective_sample_size, 16, rtol=1e-4)


@pytest.mark.slow
def test_log_z_of_a_cloud_is_that_of_its_subspace(key):
    group = PointCloud((0, 0, 0), 2)

    def density(x):
        return -0.5 * jnp.sum(group.project(x) ** 2) / 0.5**2

    base = wide((3, 2), 1.5, group)
    found = annealed_importance_sampling(key, density, base, **SHORT)
    assert abs(float(found.value) - 2 * np.log(2 * np.pi * 0.5**2)) < float(found.error)
    assert found.error < 0.5


def test_where_the_density_is_not_a_number_no_chain_goes(key):
    def density(x):
        return -0.5 * jnp.sum(x**2) + 0 * jnp.log(x[0] + 3.0)

    base = Normal(jnp.array([1.0, 0.0]), 0.7)
    found = annealed_importance_sampling(key, density, base, **SHORT)
    exact = np.log(2 * np.pi) + scipy.stats.norm.logcdf(3.0)
    assert abs(float(found.value) - exact) < float(found.error)
    assert found.error < 0.5
