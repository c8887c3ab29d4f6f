"""The update of the authors' code."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from equistein.groups import Cyclic
from equistein.kernels import Invariant, RBF
from experiments.c4_gaussians import AuthorsRule


@pytest.mark.parametrize(("repulsion", "same"), [(2.0, True), (1.0, False)])
def test_authors_rule_repels_twice_by_the_slope_in_the_target(repulsion, same, key):
    points, scores = jr.normal(key, (2, 7, 2))
    kernel = Invariant(RBF(0.7), Cyclic(4))

    def on_target(x):
        values, slopes = jax.vmap(
            jax.value_and_grad(kernel.__call__), in_axes=(None, 0)
        )(x, points)
        attraction = jnp.mean(values[:, None] * scores, axis=0)
        return attraction - repulsion * jnp.mean(slopes, axis=0)

    force = AuthorsRule(kernel).stein_force(points, points, scores)
    assert np.allclose(force, jax.jit(jax.vmap(on_target))(points), atol=1e-12) == same
