import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from equistein.features import Coordinates, Radius, SortedDistances
from equistein.groups import (
    check_invariance,
    Cyclic,
    Dihedral,
    ImageRotations,
    Orthogonal,
    PointCloud,
    SpecialOrthogonal,
    Trivial,
)
from equistein.networks import (
    FeatureNetwork,
    MLP,
    network_for,
    plain_twin,
    SteerableCNN,
    Symmetrized,
)

NETWORKS = {  # adding a network to the library means adding a line here
    "mlp": ((3, 2), lambda key, data, out: MLP(6, widths=(8,), out_size=out, key=key)),
    "coordinates": (
        (2,),
        lambda key, data, out: FeatureNetwork(
            MLP(2, widths=(8,), out_size=out, key=key), Coordinates(), data
        ),
    ),
    "distances": (
        (3, 2),
        lambda key, data, out: FeatureNetwork(
            MLP(3, widths=(8,), out_size=out, key=key), SortedDistances((0, 1, 1)), data
        ),
    ),
    "symmetrized": (
        (2,),
        lambda key, data, out: Symmetrized(
            MLP(2, widths=(8,), out_size=out, key=key), Dihedral(3)
        ),
    ),
    "built for cyclic": (
        (2,),
        lambda key, data, out: network_for(
            key, Cyclic(4), data, num_classes=out, widths=(8, 4)
        ),
    ),
    "built for rotations": (
        (3,),
        lambda key, data, out: network_for(
            key, SpecialOrthogonal(3), data, num_classes=out, widths=(8,)
        ),
    ),
    "steerable": (
        (6, 6, 1),
        lambda key, data, out: SteerableCNN(
            (6, 6, 1), (2, 3), pool_after=(1,), out_size=out, key=key
        ),
    ),
    "steerable with reflections": (
        (5, 5, 2),
        lambda key, data, out: SteerableCNN(
            (5, 5, 2),
            (2, 2),
            symmetry=ImageRotations(reflections=True),
            strides=(2, 1),
            group_pool="logsumexp",
            norm_groups=1,
            out_size=out,
            key=key,
        ),
    ),
    "plain convolutions": (
        (6, 6, 1),
        lambda key, data, out: plain_twin(
            SteerableCNN((6, 6, 1), (2, 3), out_size=out, key=key), key=key
        ),
    ),
    "built for clouds": (
        (3, 2),
        lambda key, data, out: network_for(
            key, PointCloud("COO", 2), data, num_classes=out, widths=(8,)
        ),
    ),
}
every_network = pytest.mark.parametrize(
    ("shape", "make"), NETWORKS.values(), ids=NETWORKS.keys()
)


def network_and_data(key, shape, make, out, dtype=jnp.float64):
    network_key, data_key = jr.split(key)
    data = jr.normal(data_key, (20, *shape), dtype)
    return make(network_key, data, out), data


@every_network
def test_each_output_has_the_declared_symmetry(shape, make, key):
    network, data = network_and_data(key, shape, make, 3)
    assert network(data[0]).shape == (3,)
    blend = jnp.array([1.0, -0.3, 0.7])  # no symmetry of one output hides another's
    value = lambda x: jnp.sum(blend * network(x))
    check_invariance(value, network.group(shape), data, tolerance=1e-9)


@every_network
def test_compiled_network_equals_eager(shape, make, key):
    network, data = network_and_data(key, shape, make, None)
    assert network(data[0]).shape == ()
    assert np.allclose(eqx.filter_jit(network)(data[0]), network(data[0]))


def test_an_mlp_is_a_smooth_function_of_points_of_any_shape(key):
    network = MLP(6, widths=(8, 8), key=key)
    x = jr.normal(key, (3, 2))
    assert network(x).shape == ()
    assert np.all(np.isfinite(jax.hessian(network)(x)))


def test_an_mlp_by_hand(key):
    network = MLP(2, widths=(3, 4), out_size=2, activation=jnp.tanh, key=key)
    x = jnp.array([0.3, -0.7])
    hidden = x
    for layer in network.layers[:-1]:
        hidden = jnp.tanh(layer.weight @ hidden + layer.bias)
    last = network.layers[-1]
    assert [layer.weight.shape for layer in network.layers] == [(3, 2), (4, 3), (2, 4)]
    assert np.allclose(network(x), last.weight @ hidden + last.bias)


def test_an_mlp_without_hidden_layers_is_linear(key):
    network = MLP(2, widths=(), key=key)
    x, y = jr.normal(key, (2, 2))
    slope = network(x) + network(y) - network(jnp.zeros(2))
    assert np.isclose(network(x + y), slope)


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


def test_averaging_over_an_infinite_group_is_refused(key, unchecked):
    ramp = FeatureNetwork(jnp.sum, Coordinates(), jr.normal(key, (20, 2)))
    with pytest.raises(ValueError, match="finite `symmetry`"):
        Symmetrized(ramp, SpecialOrthogonal(2))


@pytest.mark.parametrize(
    ("group", "shape", "kind"),
    [
        (Trivial(), (2,), FeatureNetwork), (Cyclic(4), (2,), Symmetrized),
        (Orthogonal(3), (3,), FeatureNetwork),
        (PointCloud((0, 0, 0), 2), (3, 2), FeatureNetwork),
    ],
)  # fmt: skip
def test_each_symmetry_has_its_network(group, shape, kind, key):
    data = jr.normal(key, (20, *shape))
    network = network_for(key, group, data, widths=(4,))
    assert isinstance(network, kind)
    assert type(network.group(shape)) is type(group)
