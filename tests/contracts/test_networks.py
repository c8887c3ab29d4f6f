import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from registries import classes_of, some_slow

from equistein.features import Coordinates, SortedDistances
from equistein.groups import (
    check_invariance,
    Cyclic,
    Dihedral,
    ImageRotations,
    PointCloud,
    SpecialOrthogonal,
)
from equistein.models import energy_for
from equistein.networks import (
    AbstractNetwork,
    AbstractNoiseNetwork,
    EGNN,
    FeatureNetwork,
    MLP,
    NoiseMLP,
    plain_twin,
    SteerableCNN,
    SteerableUNet,
    Symmetrized,
)


def built(*arguments, **options):
    return energy_for(*arguments, **options).network


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
        lambda key, data, out: built(
            key, Cyclic(4), data, num_classes=out, widths=(8, 4)
        ),
    ),
    "built for rotations": (
        (3,),
        lambda key, data, out: built(
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
    "U-shaped with reflections": (
        (6, 6),
        lambda key, data, out: SteerableUNet(
            (6, 6),
            (2, 2),
            num_blocks=1,
            symmetry=ImageRotations(reflections=True),
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
        lambda key, data, out: built(
            key, PointCloud("COO", 2), data, num_classes=out, widths=(8,)
        ),
    ),
    "noise mlp": ((3, 2), lambda key, data, out: NoiseMLP(6, widths=(8,), key=key)),
    "graph": (
        (3, 2),
        lambda key, data, out: EGNN("COO", dim=2, width=4, depth=1, key=key),
    ),
}
every_network = pytest.mark.parametrize(
    ("shape", "make"), NETWORKS.values(), ids=NETWORKS.keys()
)


def network_and_data(key, shape, make, out, dtype=jnp.float64):
    network_key, data_key = jr.split(key)
    data = jr.normal(data_key, (20, *shape), dtype)
    return make(network_key, data, out), data


@pytest.mark.slow
def test_every_network_of_the_library_is_tried(key):
    tried = {
        type(network_and_data(key, shape, make, None)[0])
        for shape, make in NETWORKS.values()
    }
    assert tried == classes_of(AbstractNetwork, "equistein.")


@pytest.mark.parametrize(
    ("shape", "make"),
    some_slow(
        NETWORKS,
        [
            "steerable with reflections",
            "U-shaped with reflections",
            "plain convolutions",
            "built for clouds",
        ],
    ),
)
def test_each_output_has_the_declared_symmetry(shape, make, key):
    network, data = network_and_data(key, shape, make, 3)
    num = 1 if isinstance(network, AbstractNoiseNetwork) else 3
    assert network(data[0]).shape == ((3,) if num == 3 else ())
    blend = jnp.array([1.0, -0.3, 0.7])  # no symmetry of one output hides another's
    value = lambda x: jnp.sum(blend[:num] * network(x))
    check_invariance(value, network.group(shape), data, tolerance=1e-9)


@every_network
def test_compiled_network_equals_eager(shape, make, key):
    network, data = network_and_data(key, shape, make, None)
    assert network(data[0]).shape == ()
    assert np.allclose(eqx.filter_jit(network)(data[0]), network(data[0]))


@eqx.filter_jit
def values_of(network, points):
    return jax.vmap(network)(points)


def in_single_precision(tree):
    narrow = lambda x: x.astype(jnp.float32) if x.dtype == jnp.float64 else x
    dynamic, static = eqx.partition(tree, eqx.is_inexact_array)
    return eqx.combine(jax.tree.map(narrow, dynamic), static)


@pytest.mark.parametrize(
    ("shape", "make"),
    some_slow(
        NETWORKS,
        [
            "steerable with reflections",
            "U-shaped with reflections",
            "plain convolutions",
            "built for clouds",
            "built for cyclic",
        ],
    ),
)
def test_single_precision_is_close_to_double(shape, make, key):
    network, data = network_and_data(key, shape, make, None)
    values = values_of(network, data[:3])
    single = values_of(in_single_precision(network), data[:3].astype(jnp.float32))
    assert single.dtype == jnp.float32
    assert np.allclose(single, values, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("shape", "make"), some_slow(NETWORKS, ["graph"]))
def test_levels_of_noise_are_scalar_functions_of_their_own(shape, make, key):
    network, data = network_and_data(key, shape, make, None)
    if not isinstance(network, AbstractNoiseNetwork):
        return
    levels = jnp.array([0.05, 0.5, 2.0])
    values = jax.vmap(lambda noise: network(data[0], noise))(levels)
    assert np.ptp(values) > 1e-3
    assert network.size == data[0].size
    point = network.project(data[0] + 1.0)
    assert np.allclose(network.project(point), point)
