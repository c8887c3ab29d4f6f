import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from equistein.targets import DoubleWell, find_minima

# The findings, section 3: energies and distances of the five minima.
ENERGIES = [-25.7922, -25.3124, -24.3524, -23.4654, -21.0665]
DISTANCES = [
    [2.699, 2.699, 5.278, 5.421, 5.526, 5.526],
    [2.477, 2.664, 2.664, 2.849, 5.353, 5.353],
    [2.412, 2.412, 5.162, 5.162, 5.698, 5.698],
    [2.385, 2.707, 2.707, 2.707, 2.707, 4.859],
    [3.053, 3.053, 3.053, 5.288, 5.288, 5.288],
]


@pytest.fixture(scope="module")
def minima():
    return DoubleWell().minima(jr.key(0))


def test_it_has_the_five_known_minima(minima):
    assert np.allclose(minima.energies, ENERGIES, atol=1e-3)
    assert np.allclose(minima.features, DISTANCES, atol=2e-3)
    energies = -jax.vmap(DoubleWell().log_density)(minima.points)
    assert np.allclose(energies, minima.energies, atol=1e-9)
    forces = jax.vmap(jax.grad(DoubleWell().log_density))(minima.points)
    assert np.max(np.abs(forces)) < 1e-6


def test_states_are_told_by_the_minimum_a_point_relaxes_to(minima, key):
    target = DoubleWell()
    noise_key, element_key = jr.split(key)
    points = minima.points + 0.1 * jr.normal(noise_key, minima.points.shape)
    points = jax.vmap(target.group.project)(points)
    moved = jax.vmap(target.group.act)(target.group.sample(element_key, 5), points)
    assert np.array_equal(target.states(moved, minima), np.arange(5))


def test_energy_of_one_pair_by_hand():
    pair = jnp.array([[0.0, 0.0], [3.0, 0.0]])
    # d - d0 = -1: a (-1) + b + c, over the temperature.
    target = DoubleWell(2, 2, a=0.5, b=-4.0, c=0.9, temperature=2.0)
    assert np.isclose(target.log_density(pair), -(-0.5 - 4.0 + 0.9) / 2)


def test_each_pair_is_counted_once():
    triangle = jnp.array([[0.0, 0.0], [4.0, 0.0], [2.0, 12**0.5]])
    assert np.isclose(DoubleWell(3, 2).log_density(triangle), 0)
    triangle = triangle * 5 / 4
    assert np.isclose(DoubleWell(3, 2).log_density(triangle), -3 * (-4.0 + 0.9))


def test_saddles_and_copies_are_left_out(key):
    target = DoubleWell(2, 1)
    # Two particles on a line: one distinct distance, on either side of the barrier.
    starts = jnp.concatenate([target.start(key, 30), jnp.array([[[-2.0], [2.0]]])])
    minima = find_minima(target.log_density, starts, target.features)
    apart = (4 / 1.8) ** 0.5  # b + 2 c y^2 = 0
    assert np.allclose(minima.features[:, 0], [4 - apart, 4 + apart], atol=1e-4) or (
        np.allclose(minima.features[:, 0], [4 + apart, 4 - apart], atol=1e-4)
    )
