import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from equistein.energies import JointEnergy, KnownEnergy
from equistein.groups import Trivial
from equistein.metrics import outlier_scores, typicality
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
