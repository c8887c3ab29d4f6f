import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from equistein.energies import JointEnergy, KnownEnergy
from equistein.groups import Trivial
from equistein.metrics import auroc, outlier_scores, typicality
from equistein.networks import MLP


def test_outlier_scores_are_those_of_the_energy(key):
    points = jr.normal(key, (5, 2))
    bowl = KnownEnergy(lambda x: -1.5 * jnp.sum(x**2), Trivial())
    found = outlier_scores(bowl, points)
    assert set(found) == {"log_density", "gradient_norm"}
    norms = np.linalg.norm(points, axis=1)
    assert np.allclose(found["log_density"], -1.5 * norms**2)
    assert np.allclose(found["gradient_norm"], -3 * norms)
    joint = JointEnergy(MLP(2, widths=(4,), out_size=3, key=key))
    logits = jax.vmap(lambda x: joint.evaluate(x).logits)(points)
    confidence = np.max(jax.nn.softmax(logits, axis=1), axis=1)
    assert np.allclose(outlier_scores(joint, points)["confidence"], confidence)


def test_typicality_is_the_distance_within_classes():
    labels = jnp.array([0, 0, 1, 1, -1])
    data = jnp.array([[0.0, 1.0], [0.0, -1.0], [8.0, 0.0], [12.0, 0.0], [50.0, 50.0]])
    points = jnp.array([[0.0, 0.0], [10.0, 2.0], [5.0, 0.0]])
    found = typicality(lambda x: x, points, data, labels, 2)
    # Means (0, 0) and (10, 0); variances within classes 2 and 1/2.
    assert np.allclose(found, [0, -(2**2) / 0.5, -(5**2) / 2], rtol=1e-3)


def test_a_class_without_data_is_left_out_of_typicality():
    labels, data = jnp.array([0, 0, 2, 2]), jnp.array([[1.0], [-1.0], [8.0], [12.0]])
    points = jnp.array([[0.0], [10.0], [5.0]])
    given = [typicality(lambda x: x, points, data, labels, num) for num in (3, 7)]
    assert np.allclose(given[0], [0, 0, -(5**2) / 2.5], rtol=1e-3, atol=1e-9)
    assert np.array_equal(*given)


def test_a_class_of_one_point_counts_in_typicality():
    labels, data = jnp.array([0, 0, 1]), jnp.array([[1.0], [-1.0], [8.0]])
    found = typicality(lambda x: x, data[2:], data, labels, 2)
    assert np.allclose(found, 0, atol=1e-6)


def test_points_of_higher_density_may_be_untypical(key):
    data = jr.normal(key, (2_000, 30))
    labels = jnp.arange(2_000) % 2
    norms = lambda x: jnp.array([jnp.sum(x**2), x[0]])
    inside, outside = jr.normal(jr.key(1), (200, 30)), jnp.zeros((200, 30))
    scores = [typicality(norms, x, data, labels, 2) for x in (inside, outside)]
    assert auroc(*scores) > 0.95
    densities = [-0.5 * jnp.sum(x**2, axis=1) for x in (inside, outside)]
    assert auroc(*densities) < 0.05
