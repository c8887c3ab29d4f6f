"""The losses of labels and of contrastive divergence, by hand."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
import pytest
from by_hand import batch_of, bowl, divergence_of, epochs, fit, Ramps, STILL

from equistein.energies import JointEnergy, KnownEnergy, TemperedEnergy
from equistein.samplers import Langevin
from equistein.targets import DoubleWell
from equistein.training import (
    Batch,
    Blurred,
    CrossEntropy,
    ForceMatching,
    SquaredError,
)


def test_its_gradient_lowers_the_data_and_lifts_the_particles(key):
    points = jr.normal(key, (8, 2))
    objective = divergence_of(2 * points, STILL)
    state = objective.init(key, bowl(0.7), batch_of(points))

    @eqx.filter_jit
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


def test_the_weights_follow_the_means_of_data_and_particles(key):
    data, weight = jr.normal(key, (8, 2)), jnp.array([0.3, -0.2])
    (_, new), (info,) = epochs(
        key, bowl(0.0, weight), data, divergence_of(data), rate=0.5
    )
    particles = new.objective_state.particles
    mean = np.mean(data, axis=0) - np.mean(particles, axis=0)
    assert np.allclose(new.energy.slope, weight - 0.5 * mean)
    above, below = np.mean(data, axis=0) @ weight, np.mean(particles, axis=0) @ weight
    assert np.allclose(info["positive_energy"], above)
    assert np.allclose(info["negative_energy"], below)
    assert np.allclose(info["loss"], above - below)
    assert np.allclose(info["score_norm"], np.linalg.norm(weight))
    assert new.epoch == 1


def test_regularization_adds_the_mean_squares_of_the_energies(key):
    data, weight = jr.normal(key, (8, 2)), jnp.array([0.3, -0.2])
    objective = divergence_of(data, regularization=0.1)
    (_, new), (info,) = epochs(key, bowl(0.0, weight), data, objective)
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


def ramps(key):
    return JointEnergy(Ramps(jr.normal(key, (3, 2))))


@pytest.mark.slow
def test_cross_entropy_is_optax_s_on_the_labelled_points(key):
    slope_key, key = jr.split(key)
    energy, points = ramps(slope_key), jr.normal(key, (6, 2))
    labels = jnp.array([2, -1, 0, -1, -1, 1])
    loss, _, info = CrossEntropy().loss(key, energy, None, batch_of(points, labels))
    known = np.array([0, 2, 5])
    logits = jax.jit(jax.vmap(energy.logits))(points)[known]
    losses = optax.softmax_cross_entropy_with_integer_labels(logits, labels[known])
    assert np.isclose(loss, np.mean(losses))
    assert np.isclose(info["cross_entropy"], loss)
    right = np.mean(np.argmax(logits, axis=1) == labels[known])
    assert np.isclose(info["accuracy"], right)
    assert info["num_labels"] == 3
    # It is the mean of E(x, y) - E(x).
    gaps = [
        energy.joint_energy(points[i], labels[i]) - energy(points[i]) for i in known
    ]
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

    slopes = eqx.filter_jit(eqx.filter_value_and_grad(loss, has_aux=True))
    (value, info), slope = slopes(bowl(2.0), energies)
    assert value == info["squared_error"] == (1 + 9) / 2
    assert info["num_labels"] == 2
    # d/da of ((a/2)^2 + (9a/2 - 12)^2) / 2 at a = 2
    assert np.isclose(slope.precision, (1 * 1 + 9 * (9 - 12)) / 2)
    (value, info), slope = slopes(bowl(2.0), jnp.full(3, jnp.nan))
    assert value == slope.precision == 0.0
    assert np.isnan(info["squared_error"])


def loss_of_forces(energy, points, scores):
    batch, objective = batch_of(points), ForceMatching(scores)
    assert objective.init(jr.key(0), energy, batch) is None
    value, _, info = eqx.filter_jit(objective.loss)(jr.key(0), energy, None, batch)
    return value, info


def test_forces_of_a_harmonic_energy(key):
    points = jr.normal(key, (6, 2))
    scores = np.array(-3.0 * points)  # F / kT of E = 3 |x|^2 / 2
    right, info = loss_of_forces(bowl(3.0), points, scores)
    assert np.isclose(right, 0, atol=1e-24)
    assert info["num_forces"] == 6
    wrong, _ = loss_of_forces(bowl(1.0), points, scores)
    assert np.isclose(wrong, np.mean((2.0 * points) ** 2))
    # A row of which a number is unknown does not count, nor does its gradient.
    scores[1, 0], scores[4] = np.nan, np.nan
    some, info = loss_of_forces(bowl(1.0), points, scores)
    assert np.isclose(some, np.mean((2.0 * points[jnp.array([0, 2, 3, 5])]) ** 2))
    assert info["num_forces"] == 4
    slope = jax.grad(lambda a: loss_of_forces(bowl(a), points, scores)[0])(1.0)
    assert np.isclose(slope, -some)  # d/da (a - 3)^2 |x|^2 is -1 times it at a = 1
    batch = Batch(points[4:5], None, jnp.array([4]))  # of which none is known
    value, _, info = ForceMatching(scores).loss(key, bowl(), None, batch)
    assert value == 0
    assert np.isnan(info["force_matching_loss"])


def test_forces_of_dw4(key):
    target = DoubleWell()
    points = target.start(key, 5)
    known = KnownEnergy(target.log_density, target.group)
    scores = jax.jit(jax.vmap(jax.grad(target.log_density)))(points)
    assert loss_of_forces(known, points, scores)[0] < 1e-20
    broken = KnownEnergy(DoubleWell(b=-3.0).log_density, target.group)
    assert loss_of_forces(broken, points, scores)[0] > 0.1


def test_forces_on_blurred_points_are_those_of_the_blurred_density(key):
    points = jr.normal(key, (20_000, 1))  # E = x^2 / 2, so that F / kT = -x
    objective = Blurred(ForceMatching(-points), 1.0)

    batch = batch_of(points)

    @jax.jit
    @jax.grad
    def slope(precision):
        return objective.loss(key, bowl(precision), None, batch)[0]

    # The blurred density has variance 2, precision 1/2; the clean one 1.
    assert abs(slope(0.5)) < 5 * 4 / 20_000**0.5
    assert slope(1.0) > 1


def test_scores_of_other_data_are_refused(key, tmp_path):
    for scores in (np.full((4, 2), np.nan), np.full((4, 2), np.inf), np.ones(4)):
        with pytest.raises(ValueError, match="ForceMatching"):
            ForceMatching(scores)
    data, objective = jr.normal(key, (16, 2)), ForceMatching(np.ones((15, 2)))
    with pytest.raises(ValueError, match=r"of the shape of the data, \(16, 2\)"):
        fit(key, bowl(), data, objective)
    np.save(tmp_path / "x.npy", np.asarray(data[:15]))
    on_disk = np.load(tmp_path / "x.npy", mmap_mode="r")
    for wrapped in (objective, 2.0 * Blurred(objective, 0.1)):
        with pytest.raises(ValueError, match="an array in memory"):
            fit(key, bowl(), on_disk, wrapped)
