"""Ladders of temperatures and the journeys through them, by hand."""

import jax.numpy as jnp
import numpy as np

from equistein.samplers import MALA, ParallelTempering
from equistein.samplers._geometric_path import ess_fraction, unvalued
from equistein.samplers._ladder import _arrived, equal_rejection, first_ladder, Replicas


def test_a_ladder_of_equal_rejection_divides_the_barrier():
    # The barrier is 0, .3, .4; its half is two thirds of the way to .5.
    found = equal_rejection(jnp.array([1.0, 0.5, 0.0]), jnp.array([0.3, 0.1]))
    assert np.allclose(found, [1, 2 / 3, 0])


def test_the_first_ladder_is_closest_at_the_hot_end():
    assert np.allclose(first_ladder(3), [1, 1 / 16, 0])


def test_the_effective_share_of_equal_weights_is_all_of_them():
    assert np.allclose(ess_fraction(jnp.zeros(5)), 1)
    one = jnp.array([0.0, -jnp.inf, -jnp.inf, -jnp.inf])
    assert np.allclose(ess_fraction(one), 1 / 4)


def test_a_journey_is_from_the_target_to_the_hot_end_and_back():
    heading = jnp.array([[0, 2, 1], [1, 0, 2], [0, 1, 2]])
    trips = jnp.array([[0, 3, 1], [1, 0, 0], [0, 0, 5]])
    walker = unvalued(jnp.zeros((3, 3, 2)))
    found = _arrived(Replicas(walker, heading, trips))
    assert np.array_equal(found.heading, [[1, 1, 1], [1, 0, 2], [0, 2, 2]])
    assert np.array_equal(found.round_trips, [[0, 4, 1], [1, 0, 0], [0, 0, 5]])
    walker = unvalued(jnp.zeros((1, 3, 2)))
    alone = _arrived(Replicas(walker, heading[:1], trips[:1]))
    assert np.array_equal(alone.heading, [[1, 1, 1]])


def test_chains_are_tuned_first_and_when_the_ladder_was_last_moved():
    steps = range(12)
    adaptive = ParallelTempering(MALA(0.1), num_temperatures=3, num_adapt=10)
    fixed = ParallelTempering(MALA(0.1), [1.0, 0.5, 0.0], num_adapt=10)
    for sampler, due in ((adaptive, [0, 5]), (fixed, [0])):
        found = [step for step in steps if sampler._tunes(jnp.asarray(step))]
        assert found == due
