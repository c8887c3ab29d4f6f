"""The losses of labels and of contrastive divergence, by hand."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
import pytest
from by_hand import (
    batch_of,
    bowl,
    divergence_of,
    epochs,
    Ramps,
    Slope,
    STILL,
)

from equistein.energies import JointEnergy, TemperedEnergy
from equistein.samplers import Langevin
from equistein.training import (
    ContrastiveDivergence,
    CrossEntropy,
    divergence,
    SquaredError,
)

# ------------------------------------------------------------ contrastive divergence


def test_divergence_by_hand():
    above, below = jnp.array([1.0, 2.0, 6.0]), jnp.array([4.0, -8.0])
    loss, info = divergence(above, below, 0.0)
    assert loss == 3.0 + 2.0
    assert info == {
        "positive_energy": 3.0, "negative_energy": -2.0, "largest_energy": 8.0,
    }  # fmt: skip
    loss, _ = divergence(above, below, 0.5)
    assert loss == 3.0 + 2.0 + 0.5 * (41 / 3 + 80 / 2)


def test_its_gradient_lowers_the_data_and_lifts_the_particles(key):
    points = jr.normal(key, (8, 2))
    objective = divergence_of(2 * points, STILL)
    state = objective.init(key, bowl(0.7), batch_of(points))

    @eqx.filter_grad(has_aux=True)
    def slopes(energy):
        loss, state_after, _ = objective.loss(key, energy, state, batch_of(points))
        return loss, state_after

    slope, after = slopes(bowl(0.7))
    squares = [
        np.sum(np.asarray(x) ** 2, axis=1).mean() for x in (points, after.particles)
    ]
    # The negatives are held fixed: no gradient flows through their steps.
    assert np.isclose(slope.precision, 0.5 * (squares[0] - squares[1]))
    assert np.allclose(
        slope.slope, jnp.mean(points.sum(1)) - jnp.mean(after.particles.sum(1))
    )


def test_no_gradient_flows_through_the_steps_of_the_particles(key):
    points = jr.normal(key, (8, 2))
    objective = divergence_of(points)  # long steps, along the score
    state = objective.init(key, bowl(0.7), batch_of(points))

    @eqx.filter_grad(has_aux=True)
    def slopes(energy):
        loss, state_after, _ = objective.loss(key, energy, state, batch_of(points))
        return loss, state_after

    slope, after = slopes(bowl(0.7))
    means = [jnp.mean(jnp.sum(x**2, axis=1)) for x in (points, after.particles)]
    assert np.isclose(slope.precision, 0.5 * (means[0] - means[1]))


def test_the_weights_follow_the_means_of_data_and_particles(key):
    data, weight = jr.normal(key, (8, 2)), jnp.array([0.3, -0.2])
    (_, new), (info,) = epochs(key, Slope(weight), data, divergence_of(data), rate=0.5)
    particles = new.objective_state.particles
    mean = np.mean(data, axis=0) - np.mean(particles, axis=0)
    assert np.allclose(new.energy.weight, weight - 0.5 * mean)
    above, below = np.mean(data, axis=0) @ weight, np.mean(particles, axis=0) @ weight
    assert np.allclose(info["positive_energy"], above)
    assert np.allclose(info["negative_energy"], below)
    assert np.allclose(info["loss"], above - below)
    assert np.allclose(info["score_norm"], np.linalg.norm(weight))
    assert new.epoch == 1


def test_regularization_adds_the_mean_squares_of_the_energies(key):
    data, weight = jr.normal(key, (8, 2)), jnp.array([0.3, -0.2])
    objective = divergence_of(data, regularization=0.1)
    (_, new), (info,) = epochs(key, Slope(weight), data, objective)
    above, below = data @ weight, new.objective_state.particles @ weight
    square = np.mean(above**2) + np.mean(below**2)
    loss = np.mean(above) - np.mean(below) + 0.1 * square
    assert np.allclose(info["loss"], loss)


@pytest.mark.slow
@pytest.mark.parametrize("temperature", [2.5, 0.5])
def test_particles_feel_the_temperature(temperature, key):
    data = jnp.ones((8, 1))
    objective = divergence_of(data, Langevin(0.1), num_particles=4_000, num_steps=100)
    energy = TemperedEnergy(bowl(), temperature)
    (_, new), _ = epochs(key, energy, data, objective)
    # x <- (1 - eta / T) x + sqrt(2 eta) xi has variance T / (1 - eta / 2 T).
    found = float(np.var(new.objective_state.particles))
    fits = [abs(found * (1 - 0.1 / (2 * t)) / t - 1) for t in (temperature, 1.0)]
    limit = 5 * (2 / 4_000) ** 0.5
    assert [gap < limit for gap in fits] == [True, False]


@pytest.mark.parametrize("weight", [-1.0, float("nan"), float("inf")])
def test_a_wrong_regularization_is_refused(weight, key):
    data = jr.normal(key, (8, 2))
    with pytest.raises(ValueError, match="`regularization` >= 0, but got"):
        divergence_of(data, regularization=weight)


def test_contrastive_divergence_needs_negatives(unchecked):
    with pytest.raises(ValueError, match="`negatives`, such as .*Persistent.*got None"):
        ContrastiveDivergence(None)


# ------------------------------------------------------------ labels


def ramps(key):
    return JointEnergy(Ramps(jr.normal(key, (3, 2))))


@pytest.mark.slow
def test_cross_entropy_is_optax_s_on_the_labelled_points(key):
    slope_key, key = jr.split(key)
    energy, points = ramps(slope_key), jr.normal(key, (6, 2))
    labels = jnp.array([2, -1, 0, -1, -1, 1])
    loss, _, info = CrossEntropy().loss(key, energy, None, batch_of(points, labels))
    known = np.array([0, 2, 5])
    logits = jax.vmap(energy.logits)(points)[known]
    losses = optax.softmax_cross_entropy_with_integer_labels(logits, labels[known])
    assert np.isclose(loss, np.mean(losses))
    assert np.isclose(info["cross_entropy"], loss)
    right = np.mean(np.argmax(logits, axis=1) == labels[known])
    assert np.isclose(info["accuracy"], right)
    assert info["num_labels"] == 3
    # It is the mean of E(x, y) - E(x).
    gaps = [energy.joint(points[i], labels[i]) - energy(points[i]) for i in known]
    assert np.isclose(loss, np.mean(gaps))


@pytest.mark.slow
def test_cross_entropy_without_labels_is_nothing(key):
    points, none = jr.normal(key, (6, 2)), jnp.full(6, -1)

    def loss(energy):
        value, _, info = CrossEntropy().loss(key, energy, None, batch_of(points, none))
        return value, info

    (value, info), slopes = eqx.filter_value_and_grad(loss, has_aux=True)(ramps(key))
    assert value == 0.0
    assert np.isnan(info["cross_entropy"])  # and does not count in an epoch's mean
    assert np.isnan(info["accuracy"])
    assert np.array_equal(slopes.network.slopes, jnp.zeros((3, 2)))


def test_squared_error_passes_over_unknown_energies(key):
    points = jnp.array([[1.0], [2.0], [3.0]])
    energies = jnp.array([0.0, jnp.nan, 12.0])  # the bowl says 1, 4 and 9

    def loss(energy, energies):
        batch = batch_of(points, energies)
        value, _, info = SquaredError().loss(key, energy, None, batch)
        return value, info

    slopes = eqx.filter_value_and_grad(loss, has_aux=True)
    (value, info), slope = slopes(bowl(2.0), energies)
    assert value == info["squared_error"] == (1 + 9) / 2
    assert info["num_labels"] == 2
    # d/da of ((a/2)^2 + (9a/2 - 12)^2) / 2 at a = 2
    assert np.isclose(slope.precision, (1 * 1 + 9 * (9 - 12)) / 2)
    (value, info), slope = slopes(bowl(2.0), jnp.full(3, jnp.nan))
    assert value == slope.precision == 0.0
    assert np.isnan(info["squared_error"])
