"""Objectives add, scale, and look at blurred data."""

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from by_hand import batch_of, bowl, divergence_of, epochs, fit, Ramps, STILL

from equistein.energies import AbstractEnergy, JointEnergy, KnownEnergy
from equistein.groups import PointCloud, Trivial
from equistein.training import (
    AbstractObjective,
    Batch,
    Blurred,
    CrossEntropy,
    SquaredError,
    Sum,
)


class Level(AbstractObjective):
    """The mean energy of the data, reported by a name of its own; counts its steps."""

    name: str

    def init(self, key, energy, data):
        return jnp.ones(())

    def loss(self, key, energy, state, batch):
        value = jnp.mean(batch.evaluate(energy).energy)
        return value, state + 1, {self.name: value}


def values_and_slopes(key, objective, energy, batch):
    state = objective.init(key, energy, batch)

    def loss(energy):
        value, after, info = objective.loss(key, energy, state, batch)
        return value, (after, info)

    return eqx.filter_value_and_grad(loss, has_aux=True)(energy)


def test_objectives_add_and_scale(key):
    labels = jnp.array([0.0, 1.0, jnp.nan, 2.0])
    batch = batch_of(jr.normal(key, (4, 2)), labels)
    parts = [Level("level"), SquaredError()]
    total = 0.5 * parts[0] + parts[1] * 3.0
    assert [weight for weight, _ in total.terms] == [0.5, 3.0]
    (value, (state, info)), slope = values_and_slopes(key, total, bowl(2.0), batch)
    found = [values_and_slopes(key, part, bowl(2.0), batch) for part in parts]
    assert np.isclose(value, 0.5 * found[0][0][0] + 3 * found[1][0][0])
    expected = 0.5 * found[0][1].precision + 3 * found[1][1].precision
    assert np.isclose(slope.precision, expected)
    assert set(info) == {"level", "squared_error", "num_labels"}
    assert info["level"] == found[0][0][0]  # as it is, without its weight
    assert state[0] == 2.0


def test_sums_of_sums_are_one_sum():
    one, two, three = (Level(name) for name in "abc")
    total = 2.0 * (one + 0.5 * two) + three
    assert total.terms == ((2.0, one), (1.0, two), (1.0, three))
    assert (one + (two + three)).terms == ((1.0, one), (1.0, two), (1.0, three))


def test_a_sum_uses_labels_if_a_part_does():
    assert not (Level("a") + Level("b")).uses_labels
    assert (Level("a") + 0.1 * CrossEntropy()).uses_labels
    assert Blurred(Level("a") + SquaredError(), 0.1).uses_labels
    assert not Blurred(Level("a"), 0.1).uses_labels


def test_two_objectives_that_report_the_same_name_are_refused(key):
    data = jr.normal(key, (8, 2))
    twice = Level("a") + Level("b") + 0.5 * Level("a")
    with pytest.raises(ValueError, match="both report a"):
        fit(key, bowl(), data, twice)


def test_a_weight_that_is_no_number_is_refused(unchecked):
    for weight in (float("nan"), float("inf"), "a", None):
        with pytest.raises((ValueError, TypeError)):
            Sum(((weight, Level("a")),))
    with pytest.raises(ValueError, match="`terms`|finite"):
        Sum(((1.0, "not an objective"),))


@pytest.mark.slow
def test_an_energy_is_evaluated_once_on_a_batch_by_several_objectives(key):
    calls = []

    class Counted(AbstractEnergy):
        network: Ramps

        def __call__(self, point):
            return self.evaluate(point).energy

        def evaluate(self, point):
            calls.append(1)
            return JointEnergy(self.network).evaluate(point)

        def group(self, shape):
            return Trivial()

    energy = Counted(Ramps(jr.normal(key, (3, 2))))
    labels = jnp.array([0, 1, 2, -1])
    batch = batch_of(jr.normal(key, (4, 2)), labels)
    objective = Level("level") + 0.1 * CrossEntropy()
    state = (jnp.ones(()), None)
    eqx.filter_grad(lambda e: objective.loss(key, e, state, batch)[0])(energy)
    assert len(calls) == 1
    # The broken twin: on blurred data of its own, a part looks anew.
    objective = Level("level") + Blurred(CrossEntropy(), 0.1)
    batch = batch_of(batch.points, labels)
    eqx.filter_grad(lambda e: objective.loss(key, e, state, batch)[0])(energy)
    assert len(calls) == 3


def test_noise_blurs_the_data_of_each_batch(key):
    data = jnp.zeros((4_000, 2))
    objective = Blurred(divergence_of(data + 1.0, STILL), 0.3)
    _, (info,) = epochs(key, bowl(), data, objective, batch_size=2_000)
    energies = np.asarray(info["positive_energy"])
    assert energies[0] != energies[1]
    # The mean of |x|^2 / 2 over 4 000 points in the plane is the variance.
    gap = abs(np.mean(energies) / 0.3**2 - 1)
    assert gap < 5 / 4_000**0.5
    assert abs(np.mean(energies) / 0.33**2 - 1) > 5 / 4_000**0.5


def test_noise_stays_on_the_subspace_and_labels_stay_with_their_points(key):
    seen = []

    class Watching(AbstractObjective):
        def init(self, key, energy, data):
            return None

        def loss(self, key, energy, state, batch):
            seen.append(batch)
            return jnp.zeros(()), state, {}

    cloud = KnownEnergy(lambda point: -jnp.sum(point**2), PointCloud((0, 0, 0), 2))
    batch = Batch(jnp.zeros((5, 3, 2)), jnp.arange(5), jnp.arange(5), 0.25)
    Blurred(Watching(), 0.5).loss(key, cloud, None, batch)
    assert np.allclose(jnp.mean(seen[0].points, axis=1), 0)
    assert np.std(seen[0].points) > 0.2
    assert np.array_equal(seen[0].labels, batch.labels)
    assert np.array_equal(seen[0].rows, batch.rows)
    assert seen[0].step_scale == 0.25
