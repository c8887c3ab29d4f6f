import itertools

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from group_registry import (
    are_elements,
    canonicalize,
    compiled,
    every_finite_group,
    every_group,
    every_precision,
    flat,
    GROUPS,
    move,
    orbit,
    pick,
    reflects,
    sample,
)
from registries import classes_of, normal, some_slow

from equistein.groups import (
    AbstractCloud,
    AbstractGroup,
    Cyclic,
    Dihedral,
    Direct,
    ImageRotations,
    Molecule,
    Orthogonal,
    PeriodicCloud,
    Permutations,
    PointCloud,
    Product,
    SignedPermutations,
    Signs,
    SpecialOrthogonal,
    TorusTranslations,
    Trivial,
)

CLOUDS = [name for name in GROUPS if name.startswith("cloud")]


def distance_to_orbit(group, point, other):
    """Return the distance of `other` to the orbit of `point`, by trying everything."""
    if group.order is not None:
        return np.min(np.linalg.norm(flat(orbit(group, point) - other, 1), axis=1))
    if isinstance(group, TorusTranslations):
        shifted = group.act(2 * np.pi / 2.0 * (other[0] - point[0]), point)
        gap, periods = np.asarray(shifted - other), np.array(group.periods)
        turns = np.where(np.isfinite(periods), np.round(gap / periods), 0)
        return np.linalg.norm(gap - turns * np.nan_to_num(periods, posinf=0))
    if isinstance(group, Product):
        finite, rotations = group.groups
        return min(distance_to_orbit(rotations, p, other) for p in orbit(finite, point))
    if isinstance(group, Direct):
        sizes = np.cumsum([np.prod(shape) for shape in group.shapes])[:-1]
        pieces = zip(np.split(point, sizes), np.split(other, sizes), strict=True)
        return sum(
            distance_to_orbit(g, jnp.asarray(x.reshape(s)), y.reshape(s))
            for g, s, (x, y) in zip(group.groups, group.shapes, pieces, strict=True)
        )
    if isinstance(group, PeriodicCloud):
        return distance_modulo_cell(group, np.asarray(point), np.asarray(other))
    x = np.asarray(group.project(point)).reshape(-1, group.dim)
    y = np.asarray(other).reshape(-1, group.dim)
    orders = [tuple(range(len(x)))]
    if isinstance(group, AbstractCloud):
        orders = [
            order
            for order in itertools.permutations(range(len(x)))
            if keeps_the_particles(group, np.array(order))
        ]
    least = np.inf
    for order in orders:
        left, _, right = np.linalg.svd(x[list(order)].T @ y)
        signs = np.ones(group.dim)
        if not reflects(group):
            signs[-1] = np.sign(np.linalg.det(left @ right))
        best = left @ np.diag(signs) @ right  # Kabsch
        least = min(least, np.linalg.norm(x[list(order)] @ best - y))
    return least


def distance_modulo_cell(group, point, other):
    edges, labels, least = np.array(group.cell), np.array(group.species), np.inf
    for order in itertools.permutations(range(len(point))):
        if np.array_equal(labels[list(order)], labels):
            for rotation in group.rotations():
                gap = (point @ rotation.T)[list(order)] - other
                places = (gap - gap[:1]) @ np.linalg.inv(edges)
                gap = (places - np.round(places)) @ edges
                least = min(least, np.linalg.norm(gap))
    return least


def keeps_the_particles(group, order):
    kinds = np.array(getattr(group, "atomic_numbers", group.species))
    bonds = {frozenset(bond) for bond in getattr(group, "bonds", ())}
    kept = {frozenset(order[list(bond)].tolist()) for bond in bonds} == bonds
    return kept and np.array_equal(kinds[order], kinds)


@every_group
def test_product_acts_as_one_after_the_other(make, shape, key):
    group = make()
    keys = jr.split(key, 3)
    g, h = sample(group, keys[0]), sample(group, keys[1])
    x = normal(keys[2], shape)
    moved = move(group, h, x)
    for i in range(3):
        product = compiled(group, "compose")(g, pick(h, [i] * 8))
        assert np.allclose(move(group, product, x), move(group, g, moved[i]))
        assert are_elements(group, product, x)


@every_group
def test_inverse_undoes_the_action(make, shape, key):
    group = make()
    element_key, point_key = jr.split(key)
    g, x = sample(group, element_key), normal(point_key, shape)
    back = compiled(group, "inverse")(g)
    assert are_elements(group, back, x)
    for identity in (
        compiled(group, "compose")(g, back),
        compiled(group, "compose")(back, g),
    ):
        assert np.allclose(move(group, identity, x), np.asarray(x)[None])


@every_group
def test_stacked_elements_compose_and_invert_as_single_ones(make, shape, key):
    group = make()
    g, h = (sample(group, k) for k in jr.split(key))
    for stacked, one_by_one in (
        (group.compose(g, h), compiled(group, "compose")(g, h)),
        (group.inverse(g), compiled(group, "inverse")(g)),
    ):
        assert jax.tree.all(jax.tree.map(np.allclose, stacked, one_by_one))


@every_group
def test_action_is_linear_and_keeps_distances(make, shape, key):
    group = make()
    element_key, x_key, y_key = jr.split(key, 3)
    x, y = (np.asarray(normal(k, shape)) for k in (x_key, y_key))
    g = sample(group, element_key)
    gx, gy = move(group, g, x), move(group, g, y)
    assert gx.shape == (8, *shape)
    before, after = np.sum((x - y) ** 2), np.sum(flat(gx - gy, 1) ** 2, axis=1)
    assert np.all(np.abs(after - before) < 1e-12 * before)
    assert np.allclose(move(group, g, 2 * x - y), 2 * gx - gy, atol=1e-11)


@every_finite_group
def test_elements_are_distinct_and_begin_with_the_identity(make, shape, key):
    group = make()
    x = normal(key, shape)
    points = orbit(group, x)
    assert points.shape == (group.order, *shape)
    assert np.array_equal(points[0], x)
    gaps = np.max(np.abs(flat(points[:, None] - points[None], 2)), axis=2)
    assert np.min(gaps + np.eye(group.order)) > 1e-3


@every_finite_group
def test_products_of_elements_are_elements(make, shape, key):
    group = make()
    first, second = np.indices((group.order, group.order)).reshape(2, -1)
    elements = group.elements()
    products = compiled(group, "compose")(pick(elements, first), pick(elements, second))
    assert are_elements(group, products, normal(key, shape))


@pytest.mark.parametrize(("make", "shape"), some_slow(GROUPS, ["swaps and rotations"]))
@every_precision
def test_representative_is_the_same_over_the_orbit(make, shape, dtype, tolerance, key):
    group = make()
    element_key, point_key = jr.split(key)
    x = normal(point_key, shape, dtype)
    moved = move(group, sample(group, element_key), x)
    points = canonicalize(group, np.concatenate([np.asarray(x)[None], moved[1:]]))
    assert moved.dtype == points.dtype == dtype
    assert points.shape == (8, *shape)
    assert np.allclose(points, points[:1], atol=50 * tolerance)
    assert np.allclose(canonicalize(group, points), points, atol=50 * tolerance)


@every_group
def test_representative_lies_in_the_orbit(make, shape, key):
    group = make()
    points = np.asarray(normal(key, (8, *shape)))
    for point, other in zip(points, canonicalize(group, points), strict=True):
        assert distance_to_orbit(group, point, other) < 1e-6


@pytest.mark.parametrize(
    ("make", "shape"),
    [
        (lambda: SpecialOrthogonal(2), (2, 2)),
        (lambda: SpecialOrthogonal(3), (4, 3)),
        (lambda: PointCloud("COOC", 3, reflections=False), (4, 3)),
        (lambda: PointCloud((0, 0, 1), 2, reflections=False), (3, 2)),
        (lambda: Cyclic(4), (2,)),
    ],
)
def test_mirror_images_differ_where_reflections_are_left_out(make, shape, key):
    group = make()
    x = np.asarray(normal(key, (1, *shape)))
    mirrored = x * np.where(np.arange(shape[-1]) == 0, -1, 1)
    assert np.max(np.abs(canonicalize(group, mirrored) - canonicalize(group, x))) > 0.01


def test_shifts_leave_scores_as_they_are(key):
    group = TorusTranslations([2.0, np.inf, 3.0])
    score = normal(key, (3,))
    assert np.array_equal(group.push(jnp.ones(()), score), score)
    both = Direct((group, (3,)), (Cyclic(2), (2,)))
    pushed = both.push((jnp.ones(()), jnp.asarray(-np.eye(2))), jnp.arange(5.0))
    assert np.allclose(pushed, [0, 1, 2, -3, -4])


@every_group
def test_representative_of_the_origin_is_the_origin(make, shape):
    group = make()
    assert np.allclose(canonicalize(group, np.zeros((8, *shape))), 0)


@every_group
def test_projection_is_idempotent_and_commutes_with_the_action(make, shape, key):
    group = make()
    element_key, point_key = jr.split(key)
    x, g = normal(point_key, shape), sample(group, element_key)
    projected = group.project(x)
    assert np.allclose(group.project(projected), projected)
    there = jax.vmap(group.project)(jnp.asarray(move(group, g, x)))
    assert np.allclose(there, move(group, g, projected))


def test_point_cloud_is_centred():
    x = PointCloud((0, 1), 2).project(jnp.array([[1.0, 2.0], [3.0, 8.0]]))
    assert np.array_equal(x, [[-1.0, -3.0], [1.0, 3.0]])


@pytest.mark.parametrize(
    ("species", "num"),
    [((0,), 1), ("CO", 1), ("OO", 2), ("COOC", 4), ((0,) * 4, 24), ("AABBBA", 36)],
)
def test_permutations_of_a_point_cloud_are_those_within_the_species(species, num):
    group = PointCloud(species, 2)
    orders = group.permutations()
    assert orders.shape == (num, len(species))
    assert group.num_permutations == num
    assert np.array_equal(orders[0], np.arange(len(species)))
    assert len(np.unique(orders, axis=0)) == num
    assert np.all(np.sort(orders, axis=1) == np.arange(len(species)))
    labels = np.array(group.species)
    assert np.all(labels[orders] == labels)


def test_permutations_of_a_point_cloud_are_counted_without_a_list():
    assert PointCloud((0,) * 13, 3).num_permutations == 6_227_020_800
    assert PointCloud("CCCCCHHHHHHHHO", 3).num_permutations == 120 * 40_320
    assert PointCloud(range(30), 3).num_permutations == 1


@pytest.mark.parametrize(
    ("group", "shape"),
    [
        (Cyclic(4), (3,)),
        (Dihedral(4), (5, 3)),
        (ImageRotations(), (4, 5, 1)),
        (ImageRotations(), (16,)),
        (SpecialOrthogonal(3), (2,)),
        (Orthogonal(2), (2, 2, 2)),
        (PointCloud((0, 0), 2), (3, 2)),
        (PointCloud((0, 0), 2), (2, 3)),
        (PointCloud((0, 0), 2), (4,)),
        (Molecule((((0, 1),), (1, 1))), (3, 3)),
        (Permutations(3), (4, 3)),
        (Permutations(3, (((3,), (0,)), ((2,), ()))), (3,)),
        (Signs(2), (3,)),
        (SignedPermutations(2), (5,)),
        (Product(Permutations(3), Cyclic(4)), (2, 2)),
        (Direct((Permutations(3), (3,)), (Trivial(), (2,))), (4,)),
        (TorusTranslations([1.0, 2.0]), (3,)),
        (PeriodicCloud("AA", (1.0, 2.0)), (2, 3)),
    ],
)
def test_shape_check_names_the_shapes(group, shape):
    with pytest.raises(ValueError, match=r"acts on points of shape .* but got"):
        group.check_shape(shape)
    with pytest.raises(ValueError, match=r"acts on points of shape .* but got"):
        group.project(jnp.ones(shape))


def test_every_group_is_in_the_registry():
    assert {type(make()) for make, _ in GROUPS.values()} == classes_of(AbstractGroup)
