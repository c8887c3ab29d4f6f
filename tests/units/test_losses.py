import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
import pytest

from equistein.energies import AbstractEnergy, JointEnergy
from equistein.groups import PointCloud, Trivial
from equistein.kernels import RBF
from equistein.networks import AbstractNetwork
from equistein.training import (
    contrastive_divergence,
    cross_entropy,
    denoising_score_matching,
    energy_magnitude,
    squared_error,
)


class Bowl(AbstractEnergy):
    r"""$E(x) = a |x|^2 / 2$: of a normal density of precision a."""

    precision: jax.Array

    def __call__(self, point):
        return 0.5 * self.precision * jnp.sum(point**2)

    def group(self, shape):
        return Trivial()

    def kernel(self, shape, bandwidth):
        return RBF(bandwidth)


class Ramps(AbstractNetwork):
    """Logits that are linear in the point."""

    slopes: jax.Array

    def __call__(self, point):
        return self.slopes @ point

    def group(self, shape):
        return Trivial()


# ------------------------------------------------------------ contrastive divergence


def test_contrastive_divergence_by_hand():
    above, below = jnp.array([1.0, 2.0, 6.0]), jnp.array([4.0, 8.0])
    assert contrastive_divergence(above, below) == 3.0 - 6.0


def test_its_gradient_lowers_the_data_and_lifts_the_particles(key):
    points, particles = jr.normal(key, (8, 2)), 2 * jr.normal(key, (5, 2))

    def loss(energy):
        return contrastive_divergence(
            jax.vmap(energy)(points), jax.vmap(energy)(particles)
        )

    slope = eqx.filter_grad(loss)(Bowl(jnp.array(0.7))).precision
    squares = [np.sum(np.asarray(x) ** 2, axis=1).mean() for x in (points, particles)]
    assert np.isclose(slope, 0.5 * (squares[0] - squares[1]))
    assert slope < 0  # particles are too wide: the bowl gets steeper


def test_energy_magnitude_by_hand():
    above, below = jnp.array([1.0, -2.0, 1.0]), jnp.array([3.0, 1.0])
    assert energy_magnitude(above, below) == 6 / 3 + 10 / 2


# ------------------------------------------------------------ labels


def test_cross_entropy_is_optax_s_on_the_labelled_points(key):
    slope_key, key = jr.split(key)
    energy = JointEnergy(Ramps(jr.normal(slope_key, (3, 2))))
    points = jr.normal(key, (6, 2))
    labels = jnp.array([2, -1, 0, -1, -1, 1])
    logits = jax.vmap(energy.logits)(points)
    loss, accuracy = cross_entropy(logits, labels)
    known = np.array([0, 2, 5])
    logits = logits[known]
    losses = optax.softmax_cross_entropy_with_integer_labels(logits, labels[known])
    assert np.isclose(loss, np.mean(losses))
    assert np.isclose(accuracy, np.mean(np.argmax(logits, axis=1) == labels[known]))
    # It is the mean of E(x, y) - E(x).
    gaps = [energy.joint(points[i], labels[i]) - energy(points[i]) for i in known]
    assert np.isclose(loss, np.mean(gaps))


def test_cross_entropy_without_labels_is_nothing(key):
    energy = JointEnergy(Ramps(jr.normal(key, (3, 2))))
    points, none = jr.normal(key, (6, 2)), jnp.full(6, -1)
    assert cross_entropy(jax.vmap(energy.logits)(points), none) == (0.0, 0.0)

    @eqx.filter_grad
    def slopes_of(energy):
        return cross_entropy(jax.vmap(energy.logits)(points), none)[0]

    slopes = slopes_of(energy)
    assert np.array_equal(slopes.network.slopes, jnp.zeros((3, 2)))


def test_squared_error_passes_over_unknown_energies():
    energy, points = Bowl(jnp.array(2.0)), jnp.array([[1.0], [2.0], [3.0]])
    energies = jnp.array([0.0, jnp.nan, 12.0])  # the bowl says 1, 4 and 9
    assert squared_error(energy, points, energies) == (1 + 9) / 2
    slope = eqx.filter_grad(lambda e: squared_error(e, points, energies))(energy)
    # d/da of ((a/2)^2 + (9a/2 - 12)^2) / 2 at a = 2
    assert np.isclose(slope.precision, (1 * 1 + 9 * (9 - 12)) / 2)
    assert squared_error(energy, points, jnp.full(3, jnp.nan)) == 0.0


# ------------------------------------------------------------ denoising score matching

WIDTH, NOISE = 1.3, 0.5
BEST = 1 / (WIDTH**2 + NOISE**2)


def score_matching(key, precision, num=100_000):
    data_key, key = jr.split(key)
    points = WIDTH * jr.normal(data_key, (num, 1))

    def loss(energy):
        noise = jnp.asarray(NOISE)
        return denoising_score_matching(key, energy, points, noise, Trivial())

    value, slope = eqx.filter_value_and_grad(loss)(Bowl(jnp.array(precision)))
    return float(value), float(slope.precision)


@pytest.mark.parametrize("factor", [0.5, 0.95, 1.05, 2.0])
def test_score_matching_descends_to_the_precision_of_the_blurred_data(factor, key):
    value, slope = score_matching(key, factor * BEST)
    assert np.sign(slope) == np.sign(factor - 1)
    # E (xi - sigma a (x + sigma xi))^2 = 1 - 2 a sigma^2 + a^2 sigma^2 / best
    a = factor * BEST
    exact = 1 - 2 * a * NOISE**2 + a**2 * NOISE**2 / BEST
    assert abs(value - exact) < 5 * 2**0.5 * exact / 100_000**0.5


def test_score_matching_does_not_find_the_precision_of_the_data_itself(key):
    # The broken twin: without the blur the minimum would be at 1 / s^2.
    _, slope = score_matching(key, 1 / WIDTH**2)
    assert slope > 0


def test_the_noise_of_score_matching_stays_on_the_subspace(key):
    group = PointCloud((0, 0, 0), 2)
    points, noise = jnp.zeros((20_000, 3, 2)), jnp.asarray(NOISE)
    flat = Bowl(jnp.array(0.0))
    # Without a score the loss is the mean square of the noise, 4 of 6 coordinates.
    value = denoising_score_matching(key, flat, points, noise, group)
    assert abs(value - 4 / 6) < 5 * (8**0.5 / 6) / 20_000**0.5
