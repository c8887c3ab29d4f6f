import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from equistein import metrics
from equistein.metrics import accuracy

# Compiled whole, which is quicker than one operation after the other.
expected_calibration_error = jax.jit(
    metrics.expected_calibration_error, static_argnames="num_bins"
)


def logits_of(chances):
    return jnp.log(jnp.asarray(chances))


def test_accuracy_by_hand():
    logits = jnp.array([[2.0, 1.0], [0.0, 3.0], [1.0, 0.0], [5.0, 4.0]])
    assert accuracy(logits, jnp.array([0, 1, 1, 1])) == 0.5
    assert accuracy(logits.astype(jnp.float32), jnp.array([0, 1, 0, 0], jnp.int32)) == 1


def test_calibration_error_by_hand():
    # Confidences 0.9, 0.9, 0.6, 0.6, 0.6: of each bin all, none and two thirds right.
    chances = [[0.9, 0.1], [0.1, 0.9], [0.6, 0.4], [0.6, 0.4], [0.4, 0.6]]
    labels = jnp.array([0, 1, 0, 0, 0])
    found = expected_calibration_error(logits_of(chances), labels, num_bins=4)
    # In (0.75, 1]: |1 - 0.9| of two; in (0.5, 0.75]: |2/3 - 0.6| of three.
    assert np.isclose(found, (2 * 0.1 + 3 * (2 / 3 - 0.6)) / 5)
    one_bin = expected_calibration_error(logits_of(chances), labels, num_bins=1)
    assert np.isclose(one_bin, abs(4 / 5 - (2 * 0.9 + 3 * 0.6) / 5))


def test_certainty_is_in_the_last_bin():
    logits = jnp.array([[1_000.0, 0.0], [0.0, 1_000.0]])
    assert expected_calibration_error(logits, jnp.array([0, 1])) == 0
    assert expected_calibration_error(logits, jnp.array([1, 0])) == 1


@pytest.mark.parametrize(("sharpness", "passes"), [(1.0, True), (3.0, False)])
def test_a_model_that_is_right_about_itself_is_calibrated(sharpness, passes, key):
    logit_key, label_key = jr.split(key)
    logits = 2 * jr.normal(logit_key, (20_000, 3))
    labels = jr.categorical(label_key, logits)
    found = expected_calibration_error(sharpness * logits, labels)
    assert (found < 2 * (15 / 20_000) ** 0.5) == passes
