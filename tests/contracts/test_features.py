import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from group_registry import move, sample
from registries import classes_of, normal

from equistein.features import (
    AbstractFeatures,
    Bonded,
    Concatenated,
    Coordinates,
    Distances,
    PairBasis,
    PairHistogram,
    Periodic,
    Polynomials,
    Quadratic,
    Radius,
    RadiusOfGyration,
    RandomFeatures,
    SortedDistances,
    SortedRowSums,
    Torsions,
    TripletBasis,
)
from equistein.groups import (
    Cyclic,
    Molecule,
    Orthogonal,
    PeriodicCloud,
    Permutations,
    PointCloud,
    Trivial,
)

SPECIES = (0, 1, 1, 0)
_CELL = [[4.0, 0.0, 0.0], [1.0, 4.2, 0.0], [0.0, -0.6, 4.5]]
_LABELS = Permutations(3, (((3,), (0,)), ((1,), ()), ((1, 3), (1,))))
_MANY = Permutations(6)
_CLOUDS = np.random.default_rng(0).normal(size=(20, 4, 3))
_PEROXIDE = Molecule(([(0, 1), (1, 2), (2, 3)], [1, 8, 8, 1]))
_CENTERS = Molecule(  # CHFCl-CHFCl
    (
        [(0, 1), (0, 2), (0, 3), (0, 4), (1, 5), (1, 6), (1, 7)],
        [6, 6, 9, 1, 17, 9, 1, 17],
    )
)
FEATURES = {  # adding a feature map to the library means adding a line here
    "coordinates": (Coordinates(), (3, 2), 6, Trivial()),
    "circles": (Periodic([2.0, np.inf, 3.0]), (3,), 5, Trivial()),
    "waves of labels": (RandomFeatures(_LABELS, 9), (7,), 9, _LABELS),
    "sums of waves over labels": (RandomFeatures(_MANY, 9), (12,), 9, _MANY),
    "polynomials": (Polynomials(Cyclic(4), 4), (2,), 4, Cyclic(4)),
    "polynomials of distances": (
        Polynomials(PointCloud((0, 0, 0), 2), 2),
        (3, 2),
        1,
        PointCloud((0, 0, 0), 2),
    ),
    "quadratic": (Quadratic(_LABELS), (7,), 12, _LABELS),
    "bonds, angles and torsions": (
        Bonded([(0, 1), (1, 2), (2, 3)], [1, 8, 8, 1]),
        (4, 3),
        16,
        PointCloud(range(4), 3, reflections=False),
    ),
    "bonds of a molecule": (
        Bonded([(0, 1), (1, 2), (2, 3)], [1, 8, 8, 1], symmetric=True),
        (4, 3),
        12,
        _PEROXIDE,
    ),
    "bonds and distances of a molecule": (
        Concatenated(
            Bonded([(0, 1), (1, 2), (2, 3)], [1, 8, 8, 1], symmetric=True),
            SortedDistances((0, 1, 1, 0)),
        ),
        (4, 3),
        18,
        _PEROXIDE,
    ),
    "hands of two centers that are alike": (
        Bonded(_CENTERS.bonds, _CENTERS.atomic_numbers, symmetric=True),
        (8, 3),
        58,
        _CENTERS,
    ),
    "torsions": (
        Torsions([(0, 1, 2, 3), (3, 1, 0, 2)]),
        (4, 3),
        4,
        PointCloud(range(4), 3, reflections=False),
    ),
    "distances of named pairs": (
        Distances([(0, 2), (3, 1)]),
        (4, 2),
        2,
        PointCloud(range(4), 2),
    ),
    "radius of gyration": (
        RadiusOfGyration(),
        (3, 2),
        1,
        PointCloud((0, 0, 0), 2),
    ),
    "radius in the plane": (Radius(), (2,), 1, Orthogonal(2)),
    "radius in space": (Radius(epsilon=0.1), (3,), 1, Orthogonal(3)),
    "distances of like particles": (
        SortedDistances((0, 0, 0)),
        (3, 2),
        3,
        PointCloud((0, 0, 0), 2),
    ),
    "distances": (SortedDistances(SPECIES), (4, 3), 6, PointCloud(SPECIES, 3)),
    "row sums": (SortedRowSums(SPECIES), (4, 3), 4, PointCloud(SPECIES, 3)),
    "histogram of like particles": (
        PairHistogram((0, 0, 0), reach=4.0, num_centers=7, width=0.4),
        (3, 2),
        8,
        PointCloud((0, 0, 0), 2),
    ),
    "histogram": (  # of three pairs of species
        PairHistogram(SPECIES, reach=4.0, num_centers=5),
        (4, 3),
        18,
        PointCloud(SPECIES, 3),
    ),
    "basis of pairs": (
        PairBasis(SPECIES, _CLOUDS, num_gaussians=3, powers=(-2.0, 2.0)),
        (4, 3),
        15,
        PointCloud(SPECIES, 3),
    ),
    "basis of triplets": (
        TripletBasis(SPECIES, _CLOUDS, num_radial=2, num_angular=2),
        (4, 3),
        24,
        PointCloud(SPECIES, 3),
    ),
    "powers of sums over neighbors": (  # two for each pair of species and decay
        TripletBasis(SPECIES, _CLOUDS, num_radial=0, embedding=(0.5, 3.0)),
        (4, 3),
        24,
        PointCloud(SPECIES, 3),
    ),
    "triplets and powers of sums that end": (
        TripletBasis(
            (0, 0, 0), _CLOUDS[:, :3], num_radial=1, cutoff=3.0, embedding=(2.0,)
        ),
        (3, 3),
        6,
        PointCloud((0, 0, 0), 3),
    ),
    "pairs in a cell": (
        PairBasis(SPECIES, _CLOUDS, num_gaussians=3, cutoff=1.9, cell=_CELL),
        (4, 3),
        12,
        PeriodicCloud(SPECIES, _CELL),
    ),
    "triplets in a cell": (
        TripletBasis(
            (0, 0, 0),
            _CLOUDS[:, :3],
            num_radial=1,
            cutoff=1.9,
            embedding=(2.0,),
            cell=_CELL,
        ),
        (3, 3),
        6,
        PeriodicCloud((0, 0, 0), _CELL),
    ),
    "both": (
        Concatenated(SortedDistances(SPECIES), SortedRowSums(SPECIES)),
        (4, 3),
        10,
        PointCloud(SPECIES, 3),
    ),
}
every_map = pytest.mark.parametrize(
    ("features", "shape", "num", "group"), FEATURES.values(), ids=FEATURES.keys()
)


@eqx.filter_jit
def value_of(features, point):
    return features(point)


@eqx.filter_jit
def with_derivatives(features, points):
    """Return values, slopes, Laplacians, and again what has its own method."""
    others = [name for name in ("jacobian", "laplacian") if has_own(features, name)]

    def each(x):
        alone = [getattr(features, name)(x) for name in others]
        return features(x), *features.derivatives(x), *alone

    values, slopes, laplacians, *alone = jax.vmap(each)(points)
    return values, slopes, laplacians, dict(zip(others, alone, strict=True))


def has_own(features, name):
    """Whether a map replaces a method that all have."""
    return getattr(type(features), name) is not getattr(AbstractFeatures, name)


@every_map
def test_features_are_constant_on_the_orbits_and_have_their_derivatives(
    features, shape, num, group, key
):
    assert features.group(shape) == group
    x, y = np.asarray(normal(key, (2, *shape)))
    orbit = move(group, sample(group, key), x)
    centers = np.stack([x, 1e-3 * y])  # the second inside the smoothing length
    step = np.array([1e-5, 1e-7]).reshape(-1, *[1] * (x.ndim + 1))
    steps = step * np.eye(x.size).reshape(-1, *shape)
    around = np.stack([centers[:, None] + steps, centers[:, None] - steps])
    edge = np.stack([0 * x, y])
    if len(shape) == 2:  # two particles meet
        edge[1, 1] = edge[1, 0]
    parts = [centers, y[None], orbit, edge, around.reshape(-1, *shape)]
    points = np.concatenate(parts)
    *found, alone = jax.tree.map(np.asarray, with_derivatives(features, points))
    values, slopes, laplacians = found
    assert values.shape == laplacians.shape == (len(points), num)
    assert slopes.shape == (*values.shape, x.size)
    assert np.allclose(values[3 : 3 + len(orbit)], values[0], atol=1e-12)
    assert np.max(np.abs(values[0] - values[2])) > 1e-3
    assert all(np.all(np.isfinite(array)) for array in found)
    for name, array in alone.items():
        assert np.allclose(array, {"jacobian": slopes, "laplacian": laplacians}[name])

    def differences(array):
        ends = array[-4 * x.size :].reshape(2, 2, x.size, *array.shape[1:])
        width = 2 * step.reshape(-1, *[1] * array.ndim)
        return (ends[0] - ends[1]) / width  # center, coordinate, feature

    rises = differences(values).swapaxes(1, 2)
    bends = np.einsum("cifi->cf", differences(slopes))
    for found, expected in ((slopes[:2], rises), (laplacians[:2], bends)):
        for one, other in zip(found, expected, strict=True):
            assert np.allclose(one, other, rtol=1e-5, atol=1e-5 * abs(one).max() + 1e-8)

    rounded = jax.tree.leaves(with_derivatives(features, points[:13].astype("f4")))
    assert all(array.dtype == np.float32 for array in rounded)
    assert all(np.all(np.isfinite(array)) for array in rounded)

    if has_own(features, "dot"):
        weights = np.random.default_rng(0).normal(size=num)
        dot = jax.value_and_grad(features.dot, argnums=1)
        sums, rises = jax.jit(jax.vmap(dot, (None, 0)))(weights, points[2:7])
        assert np.allclose(sums, values[2:7] @ weights, rtol=1e-6)
        expected = np.einsum("pfi,f->pi", slopes[2:7], weights).reshape(-1, *shape)
        assert np.allclose(rises, expected, rtol=1e-4, atol=1e-4)


def test_pairs_of_many_particles_have_the_derivatives_of_autodiff(key):
    cell, species = (9.0, 8.0), (0, 1) * 35
    points = np.asarray(8 * jr.uniform(key, (2, 70, 2)))
    features = PairBasis(species, points, num_gaussians=1, cutoff=2.0, cell=cell)
    found = jax.jit(features.derivatives)(points[0])
    expected = jax.jit(lambda x: AbstractFeatures.derivatives(features, x))(points[0])
    assert found[0].shape == (6, 140)
    for one, other in zip(found, expected, strict=True):
        assert np.allclose(one, other, rtol=1e-8)


def test_a_particle_sees_its_neighbors_beyond_the_faces():
    features = PairBasis(
        "AA", np.zeros((1, 2, 3)) + [[[0.0], [0.7]]], num_gaussians=0,
        powers=(-2.0,), cutoff=2.0, cell=(4.0, 5.0, 6.0),
    )  # fmt: skip
    near = jnp.array([[0.5, 1.0, 1.0], [1.5, 1.0, 1.0]])
    across = jnp.array([[0.5, 1.0, 1.0], [3.5 + 8.0, 6.0, 1.0]])
    assert np.allclose(value_of(features, near), value_of(features, across), rtol=1e-6)
    with pytest.raises(ValueError, match=r"half the least .* 2, but got 2.1"):
        PairBasis("AA", np.zeros((1, 2, 3)), cutoff=2.1, cell=(4.0, 5.0, 6.0))


def test_radius_by_hand():
    x = jnp.array([3.0, 4.0])
    assert np.allclose(value_of(Radius(1e-9), x), [5.0])
    assert np.allclose(value_of(Radius(12.0), x), [13.0])
    for point, expected in ((x, 1 / 5), (jnp.array([0.0, 3.0, 4.0]), 2 / 5)):
        found = with_derivatives(Radius(1e-9), point[None])[2]
        assert np.allclose(found, [[expected]])


def test_distances_by_hand():
    corners = jnp.array([[0.0, 0.0], [3.0, 0.0], [3.0, 4.0]])
    for make, species, expected in (
        (SortedDistances, "AAA", [3.0, 4.0, 5.0]),
        # Pairs of like labels first, each pair of species by itself: AA, AB, AB.
        (SortedDistances, "ABA", [5.0, 3.0, 4.0]),
        (SortedRowSums, "AAA", [3.5, 4.0, 4.5]),
        (SortedRowSums, "ABA", [4.0, 4.5, 3.5]),
    ):
        assert np.allclose(value_of(make(species, 1e-9), corners), expected)


def test_histogram_by_hand():
    pair = jnp.array([[0.0, 0.0], [0.0, 3.0]])
    features = PairHistogram("AA", reach=4.0, num_centers=5, epsilon=1e-9)
    bins = np.exp(-np.array([9, 4, 1, 0, 1]) / 2)  # centers 0 to 4, a width of 1
    assert np.allclose(value_of(features, pair), [*bins, 3 / 4])
    narrow = PairHistogram("AA", reach=4.0, num_centers=5, width=0.5, epsilon=1e-9)
    assert np.allclose(value_of(narrow, pair), [*bins**4, 3 / 4])
    blurred = PairHistogram("AA", reach=4.0, num_centers=5, epsilon=4.0)
    assert np.isclose(value_of(blurred, pair)[-1], 5 / 4)


def test_histogram_of_several_pairs_by_hand():
    corners = jnp.array([[0.0, 0.0], [3.0, 0.0], [3.0, 4.0]])  # distances 3, 5, 4
    options = {"reach": 8.0, "num_centers": 2, "width": 1.0, "epsilon": 1e-9}
    bins = lambda d: np.exp(-((d - np.array([0.0, 8.0])) ** 2) / 2)
    alike = value_of(PairHistogram("AAA", **options), corners)
    expected = [*(bins(3) + bins(4) + bins(5)), 12 / 8]
    assert np.allclose(alike, np.array(expected) / 3**0.5)
    # Pairs of like labels first, each pair of species by itself: AA, AB, AB.
    mixed = value_of(PairHistogram("ABA", **options), corners)
    others = np.array([*(bins(3) + bins(4)), 7 / 8]) / 2**0.5
    assert np.allclose(mixed, [*bins(5), 5 / 8, *others])


def test_histogram_feels_a_fragment_that_is_far_away():
    pair = jnp.array([[0.0, 0.0, 0.0], [40.0, 0.0, 0.0]])
    slopes = eqx.filter_jit(PairHistogram("AA").jacobian)(pair)
    assert np.allclose(slopes[:-1], 0, atol=1e-12)
    assert np.allclose(slopes[-1], np.array([-1, 0, 0, 1, 0, 0]) / 8, atol=1e-6)


@pytest.mark.parametrize(
    ("make", "order", "smooth"),
    [
        (PairHistogram, 1, True),
        (PairHistogram, 2, True),
        (SortedDistances, 1, False),
        (SortedRowSums, 1, False),
    ],
)
def test_only_the_histogram_is_smooth_where_like_distances_tie(make, order, smooth):
    features = make((0, 0, 0))

    def path(t):
        """Move the first of three particles: at t = 0 two distances are equal."""
        return features(jnp.array([[t, 0.3], [-2.0, 0.0], [2.0, 0.0]]))

    derivative = path
    for _ in range(order):
        derivative = jax.jacfwd(derivative)
    derivative = jax.jit(derivative)
    jump = np.max(np.abs(derivative(1e-7) - derivative(-1e-7)))
    assert (jump < 1e-5) == smooth
    assert smooth or jump > 0.5


def test_wrong_arguments_are_refused(unchecked):
    for make in (SortedDistances, SortedRowSums, PairHistogram):
        for shape in ((3, 2), (4,), (2, 2, 2)):
            with pytest.raises(ValueError, match="got points of shape"):
                make((0, 0)).group(shape)
    with pytest.raises(ValueError, match="SortedDistances"):
        Radius().group((4, 2))
    with pytest.raises(ValueError, match="at least one"):
        Concatenated()
    mixed = Concatenated(SortedDistances((0, 0, 1)), SortedRowSums((0, 1, 1)))
    with pytest.raises(ValueError, match="share their group"):
        mixed.group((3, 2))


def test_every_feature_map_is_in_the_registry():
    assert {type(row[0]) for row in FEATURES.values()} == classes_of(AbstractFeatures)
