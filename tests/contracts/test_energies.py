import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from equistein.energies import energy_for, FeatureEnergy, SymmetrizedEnergy
from equistein.features import Coordinates, Radius
from equistein.groups import (
    check_invariance,
    Cyclic,
    Dihedral,
    Orthogonal,
    PointCloud,
    SpecialOrthogonal,
    Trivial,
)
from equistein.networks import MLP

GROUPS = {  # for each kind of energy, a symmetry that asks for it
    "trivial": (Trivial(), (3, 2)),
    "cyclic": (Cyclic(4), (2,)),
    "dihedral on clouds": (Dihedral(3), (2, 2)),
    "rotations": (SpecialOrthogonal(2), (2,)),
    "orthogonal": (Orthogonal(3), (3,)),
    "cloud": (PointCloud("COO", 2), (3, 2)),
}
every_group = pytest.mark.parametrize(
    ("group", "shape"), GROUPS.values(), ids=GROUPS.keys()
)


def energy_and_data(key, group, shape, dtype=jnp.float64):
    energy_key, data_key = jr.split(key)
    data = jax.vmap(group.project)(jr.normal(data_key, (20, *shape), dtype))
    return energy_for(energy_key, group, data, width=8, depth=1), data


@every_group
def test_energy_is_invariant_and_so_is_its_kernel(group, shape, key):
    energy, data = energy_and_data(key, group, shape)
    declared = energy.group(shape)
    check_invariance(energy.log_density, group, data, tolerance=1e-9)
    check_invariance(energy.log_density, declared, data, tolerance=1e-9)
    kernel = energy.kernel(0.5)
    kernel.check_shape(shape)
    kernel.check_target(energy.log_density, data)
    assert energy.kernel(None).rule is not None


@every_group
@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_energy_and_score_are_finite_everywhere(group, shape, dtype, key):
    # Weights take the default precision, so the narrow one runs as users run it.
    with jax.enable_x64(dtype == jnp.float64):
        energy, data = energy_and_data(key, group, shape, dtype)
        points = jnp.concatenate([data[:2], 0 * data[:1], 1_000 * data[:1]])
        both = jax.jit(lambda points: jax.vmap(jax.value_and_grad(energy))(points))
        values, scores = both(points)
        assert values.dtype == dtype
        assert scores.dtype == dtype
        assert np.all(np.isfinite(values))
        assert np.all(np.isfinite(scores))
        assert np.allclose(energy.log_density(points[0]), -values[0], rtol=1e-5)


@every_group
def test_walls_keep_the_density_normalizable(group, shape, key):
    energy, data = energy_and_data(key, group, shape)
    near, far = energy(data[0]), energy(100 * data[0])
    assert far > near + 100
    outward = jnp.sum(jax.grad(energy)(100 * data[0]) * data[0])
    assert outward > 0


def test_walls_are_out_of_the_data_s_way(key):
    data = jr.normal(key, (20, 2))
    flat = FeatureEnergy(lambda z: jnp.zeros((), z.dtype), Coordinates(), data)
    assert np.allclose(jax.vmap(flat)(data), 0, atol=1e-12)
    corner = jnp.max(data, axis=0) + 2 * jnp.std(data, axis=0)
    assert np.isclose(flat(corner), 0.5 * (2**2 + 2**2))


def test_training_leaves_the_data_s_constants_alone(key):
    energy, data = energy_and_data(key, Orthogonal(3), (3,))
    gradient = eqx.filter_grad(lambda energy: energy(3 * data[0]))(energy)
    for name in ("mean", "scale", "low", "high"):
        assert np.allclose(getattr(gradient, name), 0)
    weights = jax.tree.leaves(eqx.filter(gradient.network, eqx.is_inexact_array))
    assert max(np.max(np.abs(weight)) for weight in weights) > 0


def test_symmetrized_energy_is_the_mean_over_the_orbit(key):
    ramp = FeatureEnergy(jnp.sum, Coordinates(), jr.normal(key, (20, 2)))
    energy = SymmetrizedEnergy(ramp, Cyclic(4))
    x = jnp.array([0.3, 0.1])
    values = [ramp(y) for y in Cyclic(4).orbit(x)]
    assert np.isclose(energy(x), np.mean(values))
    assert np.std(values) > 0.1


def test_network_is_a_smooth_scalar_of_points_of_any_shape(key):
    network = MLP(6, width=8, depth=2, key=key)
    x = jr.normal(key, (3, 2))
    assert network(x).shape == ()
    assert np.all(np.isfinite(jax.hessian(network)(x)))


def test_constant_features_are_refused(key):
    data = jr.normal(key, (20, 3)).at[:, 1].set(2.0)
    with pytest.raises(ValueError, match="1 of its 3 features .* index 1"):
        FeatureEnergy(jnp.sum, Coordinates(), data)
    on_a_circle = data / jnp.linalg.norm(data, axis=1, keepdims=True)
    with pytest.raises(ValueError, match="features are constant"):
        FeatureEnergy(jnp.sum, Radius(), on_a_circle)


@pytest.mark.parametrize(
    ("group", "shape", "words"),
    [
        (Cyclic(4), (3,), "acts on points of shape"),
        (SpecialOrthogonal(3), (4, 3), "one vector"),
        (PointCloud((0, 0), 2, reflections=False), (2, 2), "mirror images"),
        (PointCloud((0, 0), 2), (3, 2), "acts on points of shape"),
    ],
)
def test_a_symmetry_without_an_energy_is_refused(group, shape, words, key):
    with pytest.raises(ValueError, match=words):
        energy_for(key, group, jr.normal(key, (8, *shape)))


def test_averaging_over_an_infinite_group_is_refused(key, unchecked):
    ramp = FeatureEnergy(jnp.sum, Coordinates(), jr.normal(key, (20, 2)))
    with pytest.raises(ValueError, match="finite `symmetry`"):
        SymmetrizedEnergy(ramp, SpecialOrthogonal(2))
