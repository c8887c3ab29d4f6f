"""Perceptrons, walls around the data, and means over orbits, by hand."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from equistein.features import Coordinates, Radius
from equistein.groups import Cyclic
from equistein.networks import FeatureNetwork, MLP, Symmetrized


def test_an_mlp_by_hand(key):
    network = MLP(2, widths=(3, 4), out_size=2, activation=jnp.tanh, key=key)
    x = jnp.array([0.3, -0.7])
    hidden = x
    for layer in network.layers[:-1]:
        hidden = jnp.tanh(layer.weight @ hidden + layer.bias)
    last = network.layers[-1]
    assert [layer.weight.shape for layer in network.layers] == [(3, 2), (4, 3), (2, 4)]
    assert np.allclose(network(x), last.weight @ hidden + last.bias)


def test_symmetrized_network_is_the_mean_over_the_orbit(key):
    ramp = FeatureNetwork(jnp.sum, Coordinates(), jr.normal(key, (20, 2)))
    network = Symmetrized(ramp, Cyclic(4))
    x = jnp.array([0.3, 0.1])
    values = [ramp(y) for y in Cyclic(4).orbit(x)]
    assert np.isclose(network(x), np.mean(values))
    assert np.std(values) > 0.1


def test_walls_are_out_of_the_data_s_way(key):
    data = jr.normal(key, (20, 2))
    flat = FeatureNetwork(lambda z: jnp.zeros((), z.dtype), Coordinates(), data)
    assert np.allclose(jax.vmap(flat)(data), 0, atol=1e-12)
    corner = jnp.max(data, axis=0) + 2 * jnp.std(data, axis=0)
    assert np.isclose(flat(corner), -0.5 * (2**2 + 2**2))


def test_walls_lower_every_class_alike(key):
    data = jr.normal(key, (20, 2))
    flat = FeatureNetwork(lambda z: jnp.arange(3.0), Coordinates(), data)
    corner = jnp.max(data, axis=0) + 2 * jnp.std(data, axis=0)
    assert np.allclose(flat(corner), jnp.arange(3.0) - 4.0)


def test_constant_features_are_refused(key):
    data = jr.normal(key, (20, 3)).at[:, 1].set(2.0)
    with pytest.raises(ValueError, match="1 of its 3 features .* index 1"):
        FeatureNetwork(jnp.sum, Coordinates(), data)
    on_a_circle = data / jnp.linalg.norm(data, axis=1, keepdims=True)
    with pytest.raises(ValueError, match="features are constant"):
        FeatureNetwork(jnp.sum, Radius(), on_a_circle)


def test_training_leaves_the_data_s_constants_alone(key):
    data = jr.normal(key, (20, 3))
    network = FeatureNetwork(MLP(1, widths=(8,), key=key), Radius(), data)
    gradient = eqx.filter_grad(lambda network: network(3 * data[0]))(network)
    for name in ("mean", "scale", "low", "high"):
        assert np.allclose(getattr(gradient, name), 0)
    weights = jax.tree.leaves(eqx.filter(gradient.network, eqx.is_inexact_array))
    assert max(np.max(np.abs(weight)) for weight in weights) > 0
