import jax.random as jr
import numpy as np
import pytest

from equistein.kernels import IMQ, RBF
from equistein.kernels._pairs import are_few


@pytest.mark.parametrize("kernel", [RBF(0.5), IMQ(0.5)])
def test_few_points_have_the_forces_that_products_give(kernel, key):
    """As many targets as sources go by differences; half of the targets do not."""
    points = jr.normal(key, (40, 2))
    found = kernel.stein_force(points, points, -points)
    half = kernel.stein_force(points[:20], points, -points)
    assert are_few(points, points)
    assert not are_few(points[:20], points)
    assert np.allclose(found[:20], half, rtol=1e-4, atol=1e-6)
    assert not np.allclose(found[20:], half, rtol=1e-2)
