import itertools

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
import scipy.optimize

from equistein.groups import PointCloud
from equistein.metrics import geometric_wasserstein

GROUPS = {
    "four in the plane": PointCloud((0,) * 4, 2),
    "four in the plane without reflections": PointCloud((0,) * 4, 2, reflections=False),
    "two species in space without reflections": PointCloud(
        "CCHHH", 3, reflections=False
    ),
    "thirteen": PointCloud((0,) * 13, 3),
    "thirteen of two species without reflections": PointCloud(
        "C" * 5 + "H" * 8, 3, reflections=False
    ),
}
every_group = pytest.mark.parametrize("group", GROUPS.values(), ids=GROUPS.keys())


def distance_between(first, second, group):
    return geometric_wasserstein(first, second, group).value


def clouds(key, group, num):
    return 2 * jr.normal(key, (num, len(group.species), group.dim))


def moved(key, group, points):
    """Return the clouds in another order, each moved, turned and relabeled."""

    @jax.jit
    def move(key, points):
        order_key, element_key, shift_key = jr.split(key, 3)
        elements = group.sample(element_key, len(points))
        shifts = jr.normal(shift_key, (len(points), 1, group.dim))
        there = jax.vmap(group.act)(elements, points)
        return jr.permutation(order_key, there + shifts)

    return move(key, points)


@every_group
def test_clouds_of_the_same_orbits_are_at_distance_zero(group, key):
    points = clouds(key, group, 6)
    there = moved(key, group, points)
    # Half the digits are left: the distance is a root of a difference.
    assert distance_between(points, there, group) < 1e-6
    assert distance_between(there, points, group) < 1e-6
    assert distance_between(points, clouds(jr.key(1), group, 6), group) > 0.5


@every_group
def test_mirror_images_differ_where_reflections_are_left_out(group, key):
    points = clouds(key, group, 6)  # one shape, compiled together
    mirrored = points.at[..., 0].multiply(-1)
    distance = distance_between(points, moved(key, group, mirrored), group)
    assert (distance < 1e-6) == group.reflections
    assert group.reflections or distance > 0.1


def squared_orbit_distance(x, y, group):
    """Return the least squared distance by trying all permutations (Kabsch)."""
    x, y = (z - z.mean(axis=0) for z in (np.asarray(x), np.asarray(y)))
    least = np.inf
    for order in itertools.permutations(range(len(x))):
        if any(group.species[i] != group.species[j] for i, j in enumerate(order)):
            continue
        left, values, right = np.linalg.svd(x.T @ y[list(order)])
        if not group.reflections:
            values[-1] *= np.linalg.det(left @ right)
        gap = np.sum(x**2) + np.sum(y**2) - 2 * np.sum(values)
        least = min(least, gap)
    return least


def by_brute_force(first, second, group):
    costs = [[squared_orbit_distance(x, y, group) for y in second] for x in first]
    rows, columns = scipy.optimize.linear_sum_assignment(costs)
    return np.mean(np.array(costs)[rows, columns]) ** 0.5


@pytest.mark.parametrize("species", ["AAA", "ABA", "ABC"])
@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("reflections", [True, False])
def test_distance_of_three_particles_is_that_of_all_motions(
    species, dim, reflections, key
):
    group = PointCloud(species, dim, reflections=reflections)
    first, second = (clouds(k, group, 4) for k in jr.split(key))
    found = geometric_wasserstein(first, second, group)
    assert found.is_exact
    assert np.isclose(found.value, by_brute_force(first, second, group), rtol=1e-9)


@pytest.mark.parametrize("reflections", [True, False])
def test_distance_by_search_is_an_upper_bound_and_close(reflections, key):
    # Six like particles: 720 permutations, too many to run over.
    group = PointCloud((0,) * 6, 2, reflections=reflections)
    first, second = (clouds(k, group, 3) for k in jr.split(key))
    found, exact = (
        distance(first, second, group)
        for distance in (distance_between, by_brute_force)
    )
    assert exact - 1e-9 < found < 1.3 * exact
    assert not geometric_wasserstein(first, second, group).is_exact
    near = moved(key, group, first) + 0.02 * jr.normal(key, first.shape)
    found, exact = (
        distance(first, near, group) for distance in (distance_between, by_brute_force)
    )
    assert np.isclose(found, exact, rtol=1e-6)


def test_distance_by_hand():
    # Pairs at distances 1 and 3 against 2 and 5: half of each gap on either side.
    pairs = lambda *gaps: jnp.array([[[0.0, 0.0], [gap, 0.0]] for gap in gaps])
    group = PointCloud((0, 0), 2)
    found = distance_between(pairs(1.0, 3.0), pairs(5.0, 2.0), group)
    assert np.isclose(found, ((2 * 0.5**2 + 2 * 1.0**2) / 2) ** 0.5)


def test_distance_in_parts_is_that_of_the_whole(key, monkeypatch):
    group = PointCloud((0, 0, 1), 2)
    first, second = (clouds(k, group, 5) for k in jr.split(key))
    whole = distance_between(first, second, group)
    monkeypatch.setattr("equistein.metrics._particle_systems._CHUNK", 40)
    assert np.isclose(distance_between(first, second, group), whole)


def test_clouds_with_a_symmetry_of_their_own_are_at_distance_zero():
    # The principal axes of a square are any, and its distances tie.
    square = jnp.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])
    turned = square @ jnp.array([[0.6, -0.8], [0.8, 0.6]])
    found = distance_between(square[None], turned[None], PointCloud((0,) * 4, 2))
    assert found < 1e-6


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        ((3, 4, 2), (4, 4, 2), "`second`"),
        ((3, 4, 2), (3, 5, 2), "`second`"),
        ((3, 5, 2), (3, 5, 2), "acts on points of shape"),
        ((3, 4, 3), (3, 4, 3), "acts on points of shape"),
        ((3, 8), (3, 8), "acts on points of shape"),
    ],
)
def test_sets_that_do_not_fit_are_refused(first, second, words, unchecked):
    with pytest.raises(ValueError, match=words):
        distance_between(jnp.ones(first), jnp.ones(second), PointCloud((0,) * 4, 2))
