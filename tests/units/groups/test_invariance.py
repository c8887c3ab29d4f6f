import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
import pytest

import equistein as es
from equistein.groups import Cyclic, PointCloud, SpecialOrthogonal

SGD = optax.sgd(0.1)


def bowl(x):
    return -jnp.sum(x**2)


def ramp(x):
    return x[0]


def test_the_message_names_the_point_the_element_and_the_size():
    with pytest.raises(es.InvarianceError) as caught:
        es.check_invariance(ramp, Cyclic(2), jnp.array([[0.0, 1.0], [3.0, 0.5]]))
    message = str(caught.value)
    assert "Cyclic" in message
    assert "[3.  0.5]" in message
    assert "[[-1. -0.]\n [ 0. -1.]]" in message
    assert "it is 3, and after" in message
    assert "it is -3, a violation of 6 " in message
    assert "check=False" not in message  # which is an argument of `es.run` alone
    with pytest.raises(es.InvarianceError) as caught:
        es.run(
            0, es.SVGD(es.kernels.Equivariant(es.kernels.RBF(1.0), Cyclic(2)), SGD),
            ramp, jnp.array([[3.0, 0.5]]), num_steps=1,
        )  # fmt: skip
    assert "check=False" in caught.value.__notes__[0]


class Stretching(Cyclic):
    """What is no group: its inverses do not undo what its elements do."""

    def act(self, element, point):
        return 1.5 * super().act(element, point)


def test_what_is_no_group_is_blamed_itself(key):
    with pytest.raises(ValueError, match="does not act as a group") as caught:
        es.check_invariance(bowl, Stretching(2), jr.normal(key, (10, 2)))
    assert not isinstance(caught.value, es.InvarianceError)


def test_a_symmetry_of_few_elements_is_tried_in_full():
    # Broken by one of 32 turns alone.
    turns = Cyclic(32)
    point = jnp.array([1.0, 0.0])
    special = turns.orbit(point)[7]
    density = lambda x: bowl(x) + jnp.exp(-1e4 * jnp.sum((x - special) ** 2))
    with pytest.raises(es.InvarianceError):
        es.check_invariance(density, turns, point[None])


def test_tolerance_is_relative_and_may_be_given(key):
    x = jr.normal(key, (10, 2))
    nearly = lambda x: 1e6 * bowl(x) + 1e-3 * ramp(x)
    es.check_invariance(nearly, Cyclic(4), x)
    with pytest.raises(es.InvarianceError):
        es.check_invariance(nearly, Cyclic(4), x, tolerance=1e-12)
    es.check_invariance(lambda x: bowl(x) + 0.1 * ramp(x), Cyclic(4), x, tolerance=1.0)


def test_single_precision_is_allowed_its_rounding(key):
    x = 10 * jr.normal(key, (10, 2), jnp.float32)
    es.check_invariance(lambda x: 1e4 * bowl(x), Cyclic(5), x)


@pytest.mark.parametrize("broken", [0.0, 1e-4])
def test_a_little_asymmetry_is_seen_in_single_precision(broken, key, single_precision):
    # The second term is symmetric, but for rounding: that alone is more than 1e-5.
    bumps = lambda x: jnp.sin(20 * jnp.sum(x**2))
    density = lambda x: bumps(x) + broken * x[0]
    points = 3 * jr.normal(key, (64, 2), jnp.float32)
    if not broken:
        es.check_invariance(density, SpecialOrthogonal(2), points)
        return
    with pytest.raises(es.InvarianceError, match="allowed: 1e-05"):
        es.check_invariance(density, SpecialOrthogonal(2), points)


def test_a_density_of_single_precision_alone_is_allowed_its_rounding(
    key, single_precision
):
    density = lambda x: 1e-3 * jnp.sin(1e4 * jnp.float32(jnp.sum(x**2)))
    points = 3 * jr.normal(key, (64, 2), jnp.float32)
    es.check_invariance(density, SpecialOrthogonal(2), points)


def test_points_without_density_are_left_out():
    inside = lambda x: jnp.where(jnp.sum(x**2) < 1, bowl(x), -jnp.inf)
    es.check_invariance(inside, Cyclic(4), jnp.array([[0.1, 0.2], [5.0, 0.0]]))


def test_a_density_that_stops_being_finite_is_not_invariant():
    half = lambda x: jnp.where(x[0] > 0, bowl(x), jnp.nan)
    with pytest.raises(es.InvarianceError, match="nan"):
        es.check_invariance(half, Cyclic(2), jnp.array([[1.0, 0.2]]))
    half = lambda x: jnp.where(x[0] > 0, bowl(x), -jnp.inf)
    with pytest.raises(es.InvarianceError, match="-inf"):
        es.check_invariance(half, Cyclic(2), jnp.array([[1.0, 0.2]]))


def test_points_of_a_cloud_are_centred_before_they_are_compared(key):
    # Not invariant under shifts, but so on the subspace where particles live.
    x = 5 + jr.normal(key, (4, 3, 2))
    es.check_invariance(bowl, PointCloud((0, 0, 0), 2), x)


def test_run_checks_the_symmetry_that_the_kernel_relies_on(key):
    import optax

    x = jr.normal(key, (6, 2))
    kernel = es.kernels.Equivariant(es.kernels.RBF(0.5), Cyclic(4))
    sampler = es.SVGD(kernel, optax.sgd(0.1))
    tilted = lambda x: bowl(x) + ramp(x)
    with pytest.raises(es.InvarianceError):
        es.run(key, sampler, tilted, x, num_steps=3)
    samples = es.run(key, sampler, tilted, x, num_steps=3, check=False)
    assert np.all(np.isfinite(samples.particles))
