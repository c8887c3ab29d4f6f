import itertools

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
import scipy.optimize

from equistein.groups import PointCloud
from equistein.metrics import pair_distances
from equistein.targets import find_minima, LennardJones, relax
from equistein.targets._lennard_jones import _settled_starts
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
    slope = jax.grad(lambda d: -target.log_density(pair_at(d)))
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
    value, score = jax.value_and_grad(target.log_density)(x)
    assert np.isfinite(value)
    assert np.all(np.isfinite(score))
    assert score[0, 0] < 0  # the trap pulls it back
    near = x.at[1, 1].set(1e-3)
    score = jax.grad(target.log_density)(near)
    assert score[1, 1] > 0  # the core pushes it away


def icosahedron():
    """Return 13 points: an icosahedron of radius 1 and its center."""
    golden = (1 + 5**0.5) / 2
    corner = [(0, a, b * golden) for a, b in itertools.product((-1, 1), repeat=2)]
    corners = np.array([np.roll(c, shift) for c in corner for shift in range(3)])
    corners = corners / np.linalg.norm(corners[0])
    return jnp.asarray(np.concatenate([np.zeros((1, 3)), corners]))


@pytest.mark.parametrize(
    ("factor", "lowest"),
    [pytest.param(1.0, -38.772, marks=pytest.mark.slow), (2.0, -83.090)],
)
def test_thirteen_particles_have_the_known_minimum(factor, lowest):
    target = LennardJones(pair_factor=factor)
    energy = jax.jit(
        jax.value_and_grad(lambda flat: -target.log_density(flat.reshape(13, 3)))
    )
    start = 0.95 * icosahedron()
    found = scipy.optimize.minimize(
        lambda flat: tuple(map(np.asarray, energy(flat))),
        np.asarray(start).ravel(), jac=True, method="BFGS",
    )  # fmt: skip
    assert abs(found.fun - lowest) < 1e-3
    minima = find_minima(target.log_density, start[None], target.features)
    assert np.allclose(minima.energies, [found.fun], atol=1e-6)
    # A minimum that may be shifted and turned freely.
    hessian = jax.jit(jax.hessian(lambda flat: energy(flat)[0]))
    curvatures = np.linalg.eigvalsh(hessian(minima.points[0].ravel()))
    assert np.sum(np.abs(curvatures) < 1e-3) == 6
    assert np.all(curvatures > -1e-3)
    # The textbook's and the literature's clusters are different densities.
    assert abs(found.fun - {1.0: -83.090, 2.0: -38.772}[factor]) > 40


@pytest.mark.slow
def test_relaxing_with_a_small_step_goes_to_the_minimum():
    target = LennardJones(pair_factor=1.0)
    start = 0.95 * icosahedron()
    end = relax(target.log_density, start[None], step=1e-3)[0]
    assert np.isclose(-target.log_density(end), -38.772, atol=1e-3)
    assert np.max(np.abs(jax.grad(target.log_density)(end))) < 1e-5


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


@pytest.mark.parametrize(
    "wrong",
    [
        {"num_particles": 1},
        {"dim": 0},
        {"pair_factor": 0.0},
        {"minimum": -1.0},
        {"trap": 0.0},
        {"temperature": 0.0},
        {"temperature": float("nan")},
        {"trap": float("nan")},
        {"container": -2.0},
        {"container": float("nan")},
    ],
)
def test_a_wrong_cluster_is_refused(wrong):
    name, value = next(iter(wrong.items()))
    with pytest.raises(ValueError, match=f"LennardJones needs `{name}`.*got {value}"):
        LennardJones(**wrong)


def test_a_trap_and_a_container_together_are_refused():
    with pytest.raises(ValueError, match="`trap`"):
        LennardJones(38, trap=1.0, container=2.0)


def test_a_container_is_a_wall_around_the_center_of_mass():
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
    force = jax.grad(target.log_density)(jnp.zeros((2, 3)))
    assert np.all(np.isfinite(force))


def mackay(shells):
    """Return the points of icosahedral shells with a particle at the center."""
    corners = np.asarray(icosahedron())[1:]
    side = np.min(np.linalg.norm(corners[1:] - corners[0], axis=1))
    points = {(0.0, 0.0, 0.0)}
    for shell in range(1, shells + 1):
        for a, b in itertools.product(corners, corners):
            if np.linalg.norm(a - b) < side + 1e-6:
                for k in range(shell + 1):
                    point = shell * a + k * (b - a)
                    points.add(tuple(np.round(point, 6) + 0.0))
    return np.array(sorted(points))


def clipped_icosahedron():
    """Return the 55 points without one end along a fivefold axis: 38 of them."""
    points = mackay(2)
    axis = points[np.argmax(np.linalg.norm(points, axis=1))]
    heights = np.round(points @ axis, 6)
    return points[np.lexsort((np.linalg.norm(points, axis=1), heights))[:38]]


def truncated_octahedron():
    """Return the 38 points of the face-centered lattice nearest to a hole of it."""
    grid = np.array(list(itertools.product(range(-4, 5), repeat=3)), float)
    lattice = grid[grid.sum(axis=1) % 2 == 0] - [1.0, 0.0, 0.0]
    return lattice[np.argsort(np.linalg.norm(lattice, axis=1))[:38]] / 2**0.5


@pytest.mark.parametrize(
    ("points", "lowest"),
    [
        (mackay(1), -44.326801),
        pytest.param(truncated_octahedron(), -173.928427, marks=pytest.mark.slow),
        (clipped_icosahedron(), -173.252378),
        pytest.param(mackay(2), -279.248470, marks=pytest.mark.slow),
    ],
    ids=["LJ-13", "LJ-38 fcc", "LJ-38 icosahedral", "LJ-55"],
)
def test_clusters_without_a_trap_have_the_energies_of_the_literature(points, lowest):
    # The Cambridge cluster database, in units of the pair energy.
    target = LennardJones(len(points), pair_factor=1.0, container=10.0)
    energy = jax.jit(
        jax.value_and_grad(lambda flat: -target.log_density(flat.reshape(-1, 3)))
    )
    found = scipy.optimize.minimize(
        lambda flat: tuple(map(np.asarray, energy(flat))),
        points.ravel(), jac=True, method="BFGS", options={"gtol": 1e-5},
    )  # fmt: skip
    assert abs(found.fun - lowest) < 2e-6


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


@pytest.mark.slow
def test_clouds_that_stick_are_drawn_anew(key):
    # A force that leaves all as it is: only new draws can end with a pair apart.
    start = _settled_starts(
        key, lambda x: 0.0 * jnp.sum(x), 20, (2, 1), 1.0,
        num_steps=1, step=1.0, longest=0.1, closest=0.5,
    )  # fmt: skip
    assert np.min(pair_distances(start)) > 0.5
    assert len(np.unique(np.asarray(start)[:, 0, 0])) == 20
