import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from registries import classes_of, normal, some_slow

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

_REFLECTIONS = ImageRotations(reflections=True)


def built(group, shape):
    """Return the row of the usual network of a group."""
    return (
        shape,
        lambda key, data, out: (
            energy_for(key, group, data, num_classes=out, widths=(8,)).network
        ),
    )


def along(features, num, shape):
    """Return the row of a perceptron of features."""
    return shape, lambda key, data, out: FeatureNetwork(
        MLP(num, widths=(8,), out_size=out, key=key), features, data
    )


def steerable(shape, fields, **options):
    """Return the row of convolutions."""
    return shape, lambda key, data, out: SteerableCNN(
        shape, fields, out_size=out, key=key, **options
    )


NETWORKS = {  # adding a network to the library means adding a line here
    "mlp": ((3, 2), lambda key, data, out: MLP(6, widths=(8,), out_size=out, key=key)),
    "coordinates": along(Coordinates(), 2, (2,)),
    "distances": along(SortedDistances((0, 1, 1)), 3, (3, 2)),
    "symmetrized": (
        (2,),
        lambda key, data, out: Symmetrized(
            MLP(2, widths=(8,), out_size=out, key=key), Dihedral(3)
        ),
    ),
    "built for cyclic": built(Cyclic(4), (2,)),
    "built for rotations": built(SpecialOrthogonal(3), (3,)),
    "steerable": steerable((6, 6, 1), (2, 3), pool_after=(1,)),
    "steerable with reflections": steerable(
        (5, 5, 2), (2, 2), symmetry=_REFLECTIONS, strides=(2, 1),
    ),
    "U-shaped with reflections": (
        (6, 6),
        lambda key, data, out: SteerableUNet(
            (6, 6), (2, 2), num_blocks=1, symmetry=_REFLECTIONS, key=key
        ),
    ),
    "plain convolutions": (
        (6, 6, 1),
        lambda key, data, out: plain_twin(
            SteerableCNN((6, 6, 1), (2, 3), out_size=out, key=key), key=key
        ),
    ),
    "built for clouds": built(PointCloud("COO", 2), (3, 2)),
    "noise mlp": ((3, 2), lambda key, data, out: NoiseMLP(6, widths=(8,), key=key)),
    "graph": (
        (3, 2), lambda key, data, out: EGNN("COO", dim=2, width=4, depth=1, key=key)
    ),
}  # fmt: skip
COSTLY = [
    "steerable with reflections", "U-shaped with reflections", "plain convolutions",
    "built for clouds",
]  # fmt: skip


def network_and_data(key, shape, make, out, dtype=jnp.float64):
    network_key, data_key = jr.split(key)
    data = normal(data_key, (20, *shape), dtype)
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
    some_slow(NETWORKS, COSTLY),
)
def test_each_output_has_the_declared_symmetry(shape, make, key):
    network, data = network_and_data(key, shape, make, 3)
    num = 1 if isinstance(network, AbstractNoiseNetwork) else 3
    assert jax.eval_shape(network, data[0]).shape == ((3,) if num == 3 else ())
    blend = jnp.array([1.0, -0.3, 0.7])  # no symmetry of one output hides another's
    value = lambda x: jnp.sum(blend[:num] * network(x))
    check_invariance(value, network.group(shape), data, tolerance=1e-9)


@eqx.filter_jit
def values_of(network, points):
    return jax.vmap(network)(points)


def in_single_precision(tree):
    narrow = lambda x: x.astype(jnp.float32) if x.dtype == jnp.float64 else x
    dynamic, static = eqx.partition(tree, eqx.is_inexact_array)
    return eqx.combine(jax.tree.map(narrow, dynamic), static)


@pytest.mark.parametrize(
    ("shape", "make"),
    some_slow(NETWORKS, [*COSTLY, "built for cyclic"]),
)
def test_single_precision_is_close_to_double(shape, make, key):
    network, data = network_and_data(key, shape, make, None)
    values = values_of(network, data[:3])
    single = values_of(in_single_precision(network), data[:3].astype(jnp.float32))
    assert single.dtype == jnp.float32
    assert np.allclose(single, values, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "name", some_slow(["noise mlp", "graph", "U-shaped with reflections"], COSTLY[1:2])
)
def test_levels_of_noise_are_scalar_functions_of_their_own(name, key):
    network, data = network_and_data(key, *NETWORKS[name], None)
    levels = jnp.array([0.05, 0.5, 2.0])
    values = jax.jit(jax.vmap(lambda noise: network(data[0], noise)))(levels)
    assert np.ptp(values) > 1e-3
