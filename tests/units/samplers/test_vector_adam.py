import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
import pytest

from equistein.groups import SpecialOrthogonal
from equistein.samplers import vector_adam


def test_two_steps_by_hand():
    gradients = [
        np.array([[3.0, 4.0], [0.0, 0.1]]),
        np.array([[0.0, -5.0], [0.2, 0.0]]),
    ]
    optimizer = vector_adam(0.5, b1=0.9, b2=0.99, eps=0.0)
    state = optimizer.init(jnp.zeros((2, 2)))
    mean, square = np.zeros((2, 2)), np.zeros(2)
    for count, gradient in enumerate(gradients, start=1):
        updates, state = optimizer.update(jnp.asarray(gradient), state)
        mean = 0.9 * mean + 0.1 * gradient
        square = 0.99 * square + 0.01 * (gradient**2).sum(axis=1) / 2
        root = np.sqrt(square / (1 - 0.99**count))
        expected = -0.5 * mean / (1 - 0.9**count) / root[:, None]
        assert np.allclose(updates, expected)


def test_first_step_has_the_same_length_for_every_point(key):
    gradient = jr.normal(key, (5, 3)) * jnp.array([1e-4, 1.0, 1e4, 1.0, 1.0])[:, None]
    optimizer = vector_adam(0.1)
    update, _ = optimizer.update(gradient, optimizer.init(gradient))
    assert np.allclose(jnp.linalg.norm(update, axis=1), 0.1 * 3**0.5, rtol=1e-3)


def test_in_one_dimension_it_is_adam(key):
    ours, theirs = vector_adam(0.1), optax.adam(0.1)
    x = jr.normal(key, (5, 1))
    mine, other = ours.init(x), theirs.init(x)
    for gradient in jr.normal(key, (3, 5, 1)):
        update, mine = ours.update(gradient, mine)
        with jax.numpy_dtype_promotion("standard"):
            expected, other = theirs.update(gradient, other)
        assert np.allclose(update, expected)


@pytest.mark.parametrize("shape", [(3,), (4, 3)])
def test_turning_the_gradients_turns_the_updates(shape, key):
    group = SpecialOrthogonal(3)
    rotations = group.sample(key, 5)  # another one for each point
    turn = jax.vmap(group.act)
    optimizer = vector_adam(0.1)
    x = jnp.zeros((5, *shape))
    straight, turned = optimizer.init(x), optimizer.init(x)
    for gradient in jr.normal(key, (3, 5, *shape)):
        update, straight = optimizer.update(gradient, straight)
        other, turned = optimizer.update(turn(rotations, gradient), turned)
        assert np.allclose(other, turn(rotations, update), atol=1e-12)


def test_points_that_feel_nothing_stay():
    optimizer = vector_adam(0.1)
    zero = jnp.zeros((4, 2), jnp.float32)
    update, _ = optimizer.update(zero, optimizer.init(zero))
    assert np.array_equal(update, zero)
    assert update.dtype == jnp.float32


def test_learning_rate_may_be_a_schedule():
    optimizer = vector_adam(optax.linear_schedule(1.0, 0.0, 2), b1=0.0, b2=0.0)
    gradient = jnp.ones((1, 1))
    state, lengths = optimizer.init(gradient), []
    for _ in range(3):
        update, state = optimizer.update(gradient, state)
        lengths.append(float(-update[0, 0]))
    assert np.allclose(lengths, [1.0, 0.5, 0.0], atol=1e-6)
