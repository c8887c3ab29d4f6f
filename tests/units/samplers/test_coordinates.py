import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from equistein.groups import PointCloud
from equistein.samplers._blackjax_chains import coordinates_on

CLOUD = PointCloud("CCO", 2)


def test_the_basis_is_orthonormal_and_spans_the_image(key):
    coordinates = coordinates_on("HMC", CLOUD.project, (3, 2))
    assert coordinates.dim == 4
    basis = np.asarray(coordinates.basis)
    assert np.allclose(basis.T @ basis, np.eye(4), atol=1e-12)
    point = jr.normal(key, (3, 2))
    there = coordinates.point(coordinates.of(point))
    assert np.allclose(there, CLOUD.project(point), atol=1e-12)
    z = coordinates.of(point)
    assert np.isclose(jnp.sum(z**2), jnp.sum(there**2))
    assert np.allclose(coordinates.of(there), z, atol=1e-12)


def test_without_a_projection_coordinates_are_the_point(key):
    coordinates = coordinates_on("HMC", lambda x: x, (2, 3))
    point = jr.normal(key, (2, 3), jnp.float32)
    assert coordinates.basis is None
    assert np.array_equal(coordinates.of(point), point.ravel())
    assert np.array_equal(coordinates.point(coordinates.of(point)), point)


def test_a_basis_is_found_while_compiling(key):
    point = jr.normal(key, (3, 2), jnp.float32)

    @jax.jit
    def there(point):
        coordinates = coordinates_on("HMC", CLOUD.project, point.shape)
        return coordinates.point(coordinates.of(point))

    assert there(point).dtype == jnp.float32
    assert np.allclose(there(point), CLOUD.project(point), atol=1e-6)


@pytest.mark.parametrize(
    "project",
    [
        jnp.sin,
        lambda x: x + 1,
        lambda x: 0.5 * x,
        lambda x: x.at[0].add(x[1]).at[1].set(0.0),
        lambda x: 0 * x,
    ],
)
def test_what_has_no_coordinates_is_refused(project):
    with pytest.raises(ValueError, match="HMC.*`project`"):
        coordinates_on("HMC", project, (3,))
