import jax.numpy as jnp
import numpy as np

from equistein.metrics import mode_weights, proportions


def test_mode_weights_by_hand():
    modes = jnp.array([[0.0, 0.0], [4.0, 0.0], [0.0, 9.0]])
    samples = jnp.array([[1.0, 0.0], [0.0, 1.0], [3.0, 1.0], [-1.0, -1.0]])
    assert np.allclose(mode_weights(samples, modes), [0.75, 0.25, 0.0])
    clouds = jnp.zeros((4, 2, 3)).at[3].set(1.0)
    assert np.allclose(mode_weights(clouds, clouds[2:]), [0.75, 0.25])


def test_proportions_by_hand():
    assert np.allclose(proportions(jnp.array([2, 0, 2, 2]), 4), [0.25, 0, 0.75, 0])
