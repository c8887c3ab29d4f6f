import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from equistein.metrics import accuracy
from experiments._image_scores import projected_gradient_attack

LINEAR = jnp.array([[1.0, -2.0, 0.5], [0.0, 0.0, 0.0]])


def linear(point):
    return LINEAR @ point


def test_an_attack_on_a_linear_classifier_is_the_sign_of_its_weights():
    points = jnp.array([[0.5, 0.5, 0.5], [0.01, 0.5, 0.98]])
    moved = projected_gradient_attack(linear, points, jnp.array([0, 1]), 0.1)
    expected = [[0.4, 0.6, 0.4], [0.11, 0.4, 1.0]]  # down for class 0, up for class 1
    assert np.allclose(moved, expected)
    unlimited = projected_gradient_attack(
        linear, points, jnp.array([0, 1]), 0.1, limits=(-5.0, 5.0)
    )
    assert np.allclose(unlimited[1], [0.11, 0.4, 1.08])


def test_an_attack_of_no_size_changes_nothing_and_more_size_misleads_more(key):
    points = jr.uniform(key, (200, 3))
    labels = jnp.argmax(jax.vmap(linear)(points), axis=1)
    found = []
    for radius in (0.0, 0.05, 0.2):
        moved = projected_gradient_attack(linear, points, labels, radius)
        assert np.max(np.abs(moved - points)) <= radius + 1e-12
        found.append(accuracy(jax.vmap(linear)(moved), labels))
    assert found[0] == 1 > found[1] > found[2]
