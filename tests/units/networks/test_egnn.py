import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from equistein.groups import PointCloud, RigidPermutation
from equistein.networks import EGNN

SPECIES = "CCOHHH"
CHARGES = (6, 6, 8, 1, 1, 1)


def network_and_cloud(key, dtype=jnp.float64, **settings):
    network_key, cloud_key = jr.split(key)
    settings = {"width": 8, "depth": 1, "num_centers": 8} | settings
    network = EGNN(SPECIES, atomic_numbers=CHARGES, key=network_key, **settings)
    return network, 2 * jr.normal(cloud_key, (len(SPECIES), 3), dtype)


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda cloud: jnp.zeros_like(cloud), marks=pytest.mark.slow),
        lambda cloud: cloud.at[1].set(cloud[0]),
        pytest.param(lambda cloud: 1e6 * cloud, marks=pytest.mark.slow),
    ],
    ids=["all at one place", "two at one place", "far apart"],
)
def test_values_and_forces_are_finite(make, key):
    network, cloud = network_and_cloud(key)
    functions = (network, jax.grad(network), jax.hessian(network))
    for values in jax.jit(lambda x: [f(x) for f in functions])(make(cloud)):
        assert np.all(np.isfinite(values))


def one_layer(network, cloud):
    """Return the energy of a network of one layer, message by message."""
    layer, silu = network.layers[0], jax.nn.silu
    hidden = [network.embedding(network.traits[kind]) for kind in network.species]
    num = len(hidden)
    sums, pairs = [jnp.zeros(8)] * num, 0.0
    centers = jnp.linspace(0, network.reach, network.num_centers)
    width = 1.2 * (centers[1] - centers[0])
    for i in range(num):
        for j in range(i + 1, num):
            epsilon = 1e-3 * network.reach
            d = jnp.sqrt(jnp.sum((cloud[i] - cloud[j]) ** 2) + epsilon**2)
            bumps = 2 * jnp.exp(-(((d - centers) / width) ** 2) / 2)
            far = jnp.array([2 * d / network.reach, jnp.log(d / network.reach)])
            before = layer.nodes(hidden[i] + hidden[j])
            before = before + layer.edges(jnp.concatenate([bumps, far]))
            message = silu(layer.message(silu(before)))
            message = message * jax.nn.sigmoid(layer.attention(message))
            pairs = pairs + network.pair_read(message)
            sums[i], sums[j] = sums[i] + message, sums[j] + message
    atoms = 0.0
    for h, total in zip(hidden, sums, strict=True):
        step = layer.update(jnp.concatenate([h, total / num**0.5]))
        atoms = atoms + network.atom_read(h + layer.update_out(silu(step)))
    return atoms + pairs / num**0.5


def test_one_layer_by_hand(key):
    network, cloud = network_and_cloud(key, depth=1)
    both = jax.jit(lambda x: (network(x), one_layer(network, x)))
    assert np.isclose(*both(cloud))


def test_many_atoms_are_summed_as_few_are(key, monkeypatch):
    import equistein.networks._egnn as module

    network, cloud = network_and_cloud(key)
    few = jax.jit(jax.value_and_grad(network))(cloud)
    monkeypatch.setattr(module, "_MAX_PRODUCT", 2)
    many = jax.jit(jax.value_and_grad(network))(cloud)
    for one, other in zip(few, many, strict=True):
        assert np.allclose(one, other)


@pytest.mark.slow
def test_the_group_is_that_of_the_species():
    network = EGNN("COO", width=4, depth=1, dim=2, key=jr.key(0))
    group = network.group((3, 2))
    assert isinstance(group, PointCloud)
    assert group.species == (0, 1, 1)
    swap = RigidPermutation(jnp.eye(2), jnp.array([0, 2, 1]))
    cloud = jr.normal(jr.key(1), (3, 2))
    assert np.isclose(network(group.act(swap, cloud)), network(cloud))
    with pytest.raises(ValueError, match="shape"):
        network.group((4, 2))
