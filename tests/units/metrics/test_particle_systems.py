import jax.numpy as jnp
import numpy as np
import pytest

from equistein.groups import PointCloud
from equistein.metrics import pair_distances, virial
from equistein.samplers import Normal


def test_pair_distances_by_hand():
    corners = jnp.array([[0.0, 0.0], [3.0, 0.0], [3.0, 4.0]])
    points = jnp.stack([corners, 2 * corners])
    assert np.allclose(pair_distances(points), [[3, 5, 4], [6, 10, 8]])
    assert pair_distances(points.astype(jnp.float32)).dtype == jnp.float32


@pytest.mark.parametrize(("scale", "passes"), [(1.0, True), (1.05, False)])
def test_virial_of_exact_samples_is_their_dimension(scale, passes, key):
    base = Normal(jnp.zeros((3, 2)), 2.0, PointCloud("COO", 2))
    found = virial(base.log_density, scale * base.sample(key, 20_000))
    # A chi-square distribution of 4 degrees of freedom.
    standard_error = (2 * 4 / 20_000) ** 0.5
    assert (abs(found - 4) < 5 * standard_error) == passes


def test_virial_by_hand():
    points = jnp.array([[1.0, 2.0], [0.0, 3.0]])
    quartic = lambda x: -jnp.sum(x**4) / 4
    assert np.isclose(virial(quartic, points), (1 + 16 + 81) / 2)
