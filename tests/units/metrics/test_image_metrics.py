import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from equistein import metrics

frechet_distance = jax.jit(metrics.frechet_distance)

NUM, DIM = 4_000, 3
SCALES = np.array([0.5, 1.0, 2.0])
SHIFT = np.array([1.0, 0.0, -0.5])


def normals(key):
    """Return points of two normal laws whose axes are turned."""
    turn = np.linalg.qr(np.arange(9.0).reshape(3, 3) ** 1.5 + np.eye(3))[0]
    first, second = jr.normal(key, (2, NUM, DIM))
    return first @ turn.T, (SCALES[None] * second + SHIFT[None]) @ turn.T


@pytest.mark.parametrize(("shift", "is_right"), [(SHIFT, True), (0 * SHIFT, False)])
def test_frechet_distance_of_normals_is_the_closed_form(shift, is_right, key):
    expected = np.sum(shift**2) + np.sum((SCALES - 1) ** 2)
    # A broken twin expects the means to be left out.
    found = float(frechet_distance(*normals(key)))
    error = (4 * np.sum(SHIFT**2 * (1 + SCALES**2)) / NUM) ** 0.5
    error += (2 * np.sum((SCALES - 1) ** 2 * (1 + SCALES**2)) / NUM) ** 0.5
    assert (abs(found - expected) < 3 * error + 2 * DIM / NUM) == is_right


def test_frechet_distance_needs_two_samples():
    with pytest.raises(ValueError, match="at least two samples"):
        metrics.frechet_distance(jnp.ones((1, 3)), jnp.ones((4, 3)))


def test_precision_and_recall_by_hand():
    data = jnp.array([[0.0], [1.0], [3.0], [10.0]])
    samples = jnp.array([[0.5], [0.6], [6.0], [100.0]])
    found = metrics.precision_and_recall(samples, data, num_neighbors=1)
    # Radii of the data 1, 1, 2 and 7; of the samples .1, .1, 5.4 and 94.
    assert float(found.precision) == 0.75
    assert float(found.recall) == 0.75  # 1 and 3 and 10 by the third, 10 by both


def test_collapsed_samples_have_precision_and_no_recall(key):
    data_key, sample_key = jr.split(key)
    data = jr.normal(data_key, (300, 2))
    spread = jr.normal(sample_key, (300, 2))
    right = metrics.precision_and_recall(spread, data)
    collapsed = metrics.precision_and_recall(1e-3 * spread, data)
    assert float(right.precision) > 0.9
    assert float(right.recall) > 0.9
    assert float(collapsed.precision) > 0.9
    assert float(collapsed.recall) < 0.02


def test_precision_and_recall_need_more_points_than_neighbors():
    with pytest.raises(ValueError, match="`num_neighbors`"):
        metrics.precision_and_recall(jnp.ones((3, 2)), jnp.ones((9, 2)))


def test_bits_per_dimension_of_a_uniform_law_are_eight():
    assert float(metrics.bits_per_dimension(jnp.zeros(()), (28, 28, 1))) == 8
    one_less = metrics.bits_per_dimension(jnp.full((2,), np.log(2.0) * 6), (3, 2))
    assert np.allclose(one_less, 7)
