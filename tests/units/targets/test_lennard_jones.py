import itertools

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
import scipy.optimize

from equistein.groups import PointCloud
from equistein.metrics import pair_distances
from equistein.targets import find_minima, LennardJones
from equistein.targets._particle_system import centered_starts


def pair_at(distance):
    return jnp.array([[0.0, 0.0, 0.0], [0.0, distance, 0.0]])


def pair_energy(target, distance):
    """Return the energy of two particles without the trap's."""
    trap = target.trap / 2 * 2 * (distance / 2) ** 2 / target.temperature
    return float(-target.log_density(pair_at(distance))) - trap


@pytest.mark.parametrize("factor", [1.0, 2.0])
@pytest.mark.parametrize("minimum", [1.0, 3.5])
def test_pair_minimum_is_minus_the_factor_at_its_distance(factor, minimum):
    target = LennardJones(2, pair_factor=factor, minimum=minimum)
    assert np.isclose(pair_energy(target, minimum), -factor)
    around = [pair_energy(target, minimum * r) for r in (0.99, 1.01)]
    assert min(around) > -factor
    # The pair energy is zero at 2^(-1/6) of that distance, and 1/64 of 2 at twice it.
    assert np.isclose(pair_energy(target, minimum / 2 ** (1 / 6)), 0)
    far = factor * (2**-12 - 2 * 2**-6)
    assert np.isclose(pair_energy(target, 2 * minimum), far)


def test_trap_and_temperature_by_hand():
    # Far apart only the trap is left: the particles are 50 from their mean.
    target = LennardJones(2, trap=0.3, temperature=2.0)
    energy = -target.log_density(pair_at(100.0) + 7.0)  # wherever the mean is
    assert np.isclose(energy, (0.3 / 2 * 2 * 50.0**2) / 2.0, rtol=1e-10)
    # A triangle of side 1, whose corners are 1/sqrt(3) from its mean.
    corners = jnp.array([[0.0, 0.0], [1.0, 0.0], [0.5, 0.75**0.5]])
    target = LennardJones(3, 2, pair_factor=1.5, trap=0.3, temperature=2.0)
    expected = -(1.5 * -3 + 0.3 / 2 * 3 / 3) / 2.0
    assert np.isclose(target.log_density(corners), expected)


def test_soft_core_continues_value_and_slope():
    target = LennardJones(2, pair_factor=1.0, minimum=2.0)
    edge = 0.4 * 2.0
    slope = jax.jit(jax.grad(lambda d: -target.log_density(pair_at(d))))
    inside, outside = edge * (1 - 1e-9), edge * (1 + 1e-9)
    exact = 0.4**-12 - 2 * 0.4**-6
    assert exact > 59_000
    assert np.isclose(pair_energy(target, inside), exact, rtol=1e-7)
    assert np.isclose(pair_energy(target, outside), exact, rtol=1e-7)
    steep = 12 * (0.4**-7 - 0.4**-13) / 2.0  # of the distance, not of its ratio
    assert np.isclose(slope(outside), steep, rtol=1e-6)
    assert np.isclose(slope(inside), steep, rtol=1e-6)
    # Below it the pair energy is linear in the squared distance.
    energies = [pair_energy(target, r**0.5 * edge) for r in (0.9, 0.5, 0.1)]
    assert np.allclose(np.diff(energies), -0.4 * edge * steep / 2)


@pytest.mark.parametrize(
    "dtype", [jnp.float32, pytest.param(jnp.float64, marks=pytest.mark.slow)]
)
def test_clashes_and_fragments_have_finite_scores(dtype):
    target = LennardJones()
    x = jnp.zeros((13, 3), dtype).at[0, 0].set(1e6)
    value_and_score = jax.jit(jax.value_and_grad(target.log_density))
    value, score = value_and_score(x)
    assert np.isfinite(value)
    assert np.all(np.isfinite(score))
    assert score[0, 0] < 0  # the trap pulls it back
    near = x.at[1, 1].set(1e-3)
    _, score = value_and_score(near)
    assert score[1, 1] > 0  # the core pushes it away


def icosahedron():
    """Return 13 points: an icosahedron of radius 1 and its center."""
    golden = (1 + 5**0.5) / 2
    corner = [(0, a, b * golden) for a, b in itertools.product((-1, 1), repeat=2)]
    corners = np.array([np.roll(c, shift) for c in corner for shift in range(3)])
    corners = corners / np.linalg.norm(corners[0])
    return jnp.asarray(np.concatenate([np.zeros((1, 3)), corners]))


def lowest_energy(target, start):
    """Return the energy of the minimum below a point, by SciPy."""
    energy = jax.jit(
        jax.value_and_grad(lambda flat: -target.log_density(flat.reshape(-1, 3)))
    )
    return scipy.optimize.minimize(
        lambda flat: tuple(map(np.asarray, energy(flat))),
        np.asarray(start).ravel(), jac=True, method="BFGS", options={"gtol": 1e-5},
    ).fun  # fmt: skip


@pytest.mark.parametrize(
    ("factor", "lowest"),
    [pytest.param(1.0, -38.772, marks=pytest.mark.slow), (2.0, -83.090)],
)
def test_thirteen_particles_have_the_known_minimum(factor, lowest):
    target, start = LennardJones(pair_factor=factor), 0.95 * icosahedron()
    found = lowest_energy(target, start)
    assert abs(found - lowest) < 1e-3
    minima = find_minima(target.log_density, start[None], target.features)
    assert np.allclose(minima.energies, [found], atol=1e-6)
    # That of the Cambridge cluster database, which has no trap.
    bare = LennardJones(13, pair_factor=factor, container=10.0)
    assert abs(lowest_energy(bare, start) + factor * 44.326801) < 1e-5
    # A minimum that may be shifted and turned freely.
    energy = lambda flat: -target.log_density(flat.reshape(13, 3))
    hessian = jax.jit(jax.hessian(energy))
    curvatures = np.linalg.eigvalsh(hessian(minima.points[0].ravel()))
    assert np.sum(np.abs(curvatures) < 1e-3) == 6
    assert np.all(curvatures > -1e-3)


@pytest.mark.slow
def test_minima_of_a_small_cluster(key):
    # Four particles in space: the tetrahedron, all six pairs at their minimum.
    target = LennardJones(4, pair_factor=1.0, trap=1e-6)
    minima = target.minima(key, 16)
    assert np.isclose(minima.energies[0], -6, atol=1e-3)
    assert np.allclose(minima.features[0], 1, atol=1e-2)


def test_group_and_subspace():
    target = LennardJones()
    assert target.group == PointCloud((0,) * 13, 3)
    assert target.degrees_of_freedom == 36
    assert LennardJones(5, 2).degrees_of_freedom == 8
    start = target.start(jr.key(0), 5)
    assert start.shape == (5, 13, 3)
    assert np.allclose(np.mean(start, axis=1), 0, atol=1e-12)


def test_a_container_is_a_wall_around_the_center_of_mass():
    with pytest.raises(ValueError, match="`trap`"):
        LennardJones(38, trap=1.0, container=2.0)
    target = LennardJones(2, pair_factor=1.5, container=3.0, temperature=0.5)
    # Ten apart, each five from the center: two outside. The pair energy is negligible.
    pair = 1.5 * (10.0**-12 - 2 * 10.0**-6)
    outside = 72 / 2 * 1.5 * 2 * 2.0**2
    for shift in (0.0, 4.0):
        energy = -target.log_density(pair_at(10.0) + shift)
        assert np.isclose(energy, (pair + outside) / 0.5)
    # Inside there is none, at the center neither.
    inside = -target.log_density(pair_at(2.0))
    assert np.isclose(inside, 1.5 * (2.0**-12 - 2 * 2.0**-6) / 0.5)
    force = jax.jit(jax.grad(target.log_density))(jnp.zeros((2, 3)))
    assert np.all(np.isfinite(force))


@pytest.mark.slow
def test_large_clusters_start_without_overlaps(key):
    target = LennardJones(55)
    start = target.start(key, 16)
    assert start.shape == (16, 55, 3)
    assert np.allclose(np.mean(start, axis=1), 0, atol=1e-10)
    assert np.min(pair_distances(start)) > 0.7
    energies = -jax.vmap(target.log_density)(start)
    assert np.all(energies < -150)
    # A uniform draw is not one to start from.
    box = centered_starts(key, 16, (55, 3), target.reach)
    assert np.min(pair_distances(box)) < 0.3
    assert np.min(-jax.vmap(target.log_density)(box)) > 1e4
