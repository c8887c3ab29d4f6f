import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from equistein.features import pair_differences
from equistein.targets import LennardJones
from equistein.targets._lennard_jones import _settled, sum_pairs


def cube(squares):
    return squares**3, 3 * squares**2


def plain(point):
    """Return the same sum as it is usually written."""
    return jnp.sum(jnp.sum(pair_differences(point) ** 2, axis=1) ** 3)


def test_value_gradient_and_curvature_are_those_of_the_sum_over_pairs(key):
    point = jr.normal(key, (5, 3))
    total = lambda x: sum_pairs(cube, None, x)
    for derivative in (lambda f: f, jax.grad, jax.jacfwd, jax.hessian):
        ours, theirs = (jax.jit(derivative(f))(point) for f in (total, plain))
        assert np.allclose(ours, theirs)
    tangent = jr.normal(jr.fold_in(key, 1), point.shape)
    pushed = jax.jit(lambda x, v: jax.jvp(total, (x,), (v,))[1])(point, tangent)
    assert np.isclose(pushed, np.sum(jax.jit(jax.grad(plain))(point) * tangent))


@pytest.mark.parametrize("num", [13, 55])
def test_single_precision_is_enough_for_a_liquid(num, key):
    # Settled clouds, shaken as much as the liquid at temperature 1 is.
    target = LennardJones(num)
    start_key, noise_key = jr.split(key)
    points = _settled(target, start_key, 8)
    points = points + 0.02 * jr.normal(noise_key, points.shape)
    forces = jax.jit(jax.vmap(jax.grad(target.log_density)))
    exact = np.asarray(forces(points))
    single = np.asarray(forces(points.astype(jnp.float32)))
    assert single.dtype == np.float32
    gaps = np.linalg.norm(single - exact, axis=(1, 2))
    assert np.max(gaps / np.linalg.norm(exact, axis=(1, 2))) < 1e-4
