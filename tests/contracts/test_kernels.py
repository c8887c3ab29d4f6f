import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
import pytest

from equistein.features import PairHistogram, Radius, SortedDistances
from equistein.groups import (
    Cyclic,
    Dihedral,
    ImageRotations,
    InvarianceError,
    Orthogonal,
    PointCloud,
    SpecialOrthogonal,
)
from equistein.kernels import (
    Equivariant,
    Gradient,
    IMQ,
    Invariant,
    Moments,
    Pullback,
    RBF,
)
from equistein.samplers import SVGD, vector_adam
from equistein.targets import DoubleWell, RotatedGaussians, Shells

_HAAR = {"num_samples": 3, "key": jr.key(1)}
_CLOUDS = {
    "e2": PointCloud((0, 0, 1), 2),
    "se2": PointCloud((0, 0, 1), 2, reflections=False),
    "e3": PointCloud((0, 0, 1), 3),
    "se3": PointCloud((0, 0, 1), 3, reflections=False),
}
_HISTOGRAM = PairHistogram((0, 0, 1), reach=4.0, num_centers=5)
KERNELS = {  # adding a kernel to the library means adding a line here
    "rbf": (RBF, None, (3,)),
    "imq": (IMQ, None, (3,)),
    "c4": (lambda h: Equivariant(RBF(h), Cyclic(4)), Cyclic(4), (2,)),
    "c4 imq": (lambda h: Equivariant(IMQ(h), Cyclic(4)), Cyclic(4), (2,)),
    "c4 of clouds": (lambda h: Equivariant(RBF(h), Cyclic(4)), Cyclic(4), (2, 2)),
    "d5": (lambda h: Equivariant(RBF(h), Dihedral(5)), Dihedral(5), (2,)),
    "images": (
        lambda h: Equivariant(RBF(h), ImageRotations()),
        ImageRotations(),
        (3, 3, 1),
    ),
    "so2": (
        lambda h: Equivariant(RBF(h), SpecialOrthogonal(2)),
        SpecialOrthogonal(2),
        (2,),
    ),
    "o2": (lambda h: Equivariant(RBF(h), Orthogonal(2)), Orthogonal(2), (2,)),
    "so3": (
        lambda h: Equivariant(RBF(h), SpecialOrthogonal(3)),
        SpecialOrthogonal(3),
        (3,),
    ),
    "o3": (lambda h: Equivariant(RBF(h), Orthogonal(3)), Orthogonal(3), (3,)),
    "haar cloud": (
        lambda h: Equivariant(RBF(h), PointCloud((0, 1, 1), 2), **_HAAR),
        None,
        (3, 2),
    ),
    "haar so2 imq": (
        lambda h: Equivariant(IMQ(h), SpecialOrthogonal(2), **_HAAR),
        None,
        (2,),
    ),
    "invariant c4": (lambda h: Invariant(RBF(h), Cyclic(4)), None, (2,)),
    "radius in the plane": (lambda h: Pullback(RBF(h), Radius()), Orthogonal(2), (2,)),
    "radius in space imq": (lambda h: Pullback(IMQ(h), Radius()), Orthogonal(3), (3,)),
    "distances": (
        lambda h: Pullback(IMQ(h), SortedDistances((0, 1, 2))),
        PointCloud((0, 1, 2), 2),
        (3, 2),
    ),
    "like distances": (
        lambda h: Pullback(RBF(h), SortedDistances((0, 0, 0, 1))),
        PointCloud((0, 0, 0, 1), 2),
        (4, 2),
    ),
    **{
        name: (lambda h, group=group: Equivariant(RBF(h), group), group, (3, group.dim))
        for name, group in _CLOUDS.items()
    },
    "histogram": (
        lambda h: Pullback(RBF(h), _HISTOGRAM),
        PointCloud((0, 0, 1), 2),
        (3, 2),
    ),
    "gradient of the radius": (
        lambda h: Gradient(RBF(h), Radius()),
        Orthogonal(3),
        (3,),
    ),
    "gradient of distances": (
        lambda h: Gradient(IMQ(h), SortedDistances((0, 1, 2))),
        PointCloud((0, 1, 2), 3),
        (3, 3),
    ),
    "gradient of a histogram": (
        lambda h: Gradient(RBF(h), _HISTOGRAM),
        PointCloud((0, 0, 1), 2),
        (3, 2),
    ),
    "gradient of a histogram imq": (
        lambda h: Gradient(IMQ(h), _HISTOGRAM),
        PointCloud((0, 0, 1), 2),
        (3, 2),
    ),
    "moments": (
        lambda h: Moments(_HISTOGRAM).at(h * jr.normal(jr.key(2), (9, 3, 2))),
        PointCloud((0, 0, 1), 2),
        (3, 2),
    ),
}
every_kernel = pytest.mark.parametrize(
    ("make", "shape"),
    [(make, shape) for make, _, shape in KERNELS.values()],
    ids=KERNELS.keys(),
)
EXACT = {name: value for name, value in KERNELS.items() if value[1] is not None}
every_exact_kernel = pytest.mark.parametrize(
    ("make", "group", "shape"), EXACT.values(), ids=EXACT.keys()
)


def representation(group, element, shape):
    """Return the matrix of an element on flattened points."""
    size = int(np.prod(shape))
    basis = jnp.eye(size).reshape(size, *shape)
    moved = jax.vmap(group.act, (None, 0))(element, basis)
    return np.asarray(moved).reshape(size, size).T


@eqx.filter_jit
def stein_force(kernel, targets, sources, scores):
    return kernel.stein_force(targets, sources, scores)


@eqx.filter_jit
def defined_force(kernel, targets, sources, scores):
    """Return the Stein force by its definition, from the kernel's matrix alone."""
    shape = targets.shape[1:]

    def term(x, y, s):
        matrix = lambda flat: kernel.matrix(x, flat.reshape(shape))
        slopes = jax.jacfwd(matrix)(y.ravel())  # dK_ab / dy_c
        return matrix(y.ravel()) @ s.ravel() + jnp.einsum("abb->a", slopes)

    terms = jax.vmap(jax.vmap(term, (None, 0, 0)), (0, None, None))
    forces = terms(targets, sources, scores)
    return jnp.mean(forces, axis=1).reshape(targets.shape)


def points_and_scores(key, shape, dtype=jnp.float64):
    """Return targets, sources and scores, of the same sizes in all tests."""
    keys = jr.split(key, 3)
    return tuple(
        jr.normal(k, (num, *shape), dtype)
        for k, num in zip(keys, (19, 5, 5), strict=True)
    )


@every_kernel
def test_matrix_is_symmetric_and_positive_semidefinite(make, shape, key):
    kernel, x = make(0.7), jr.normal(key, (6, *shape))
    rows = jax.vmap(jax.vmap(kernel.matrix, (None, 0)), (0, None))
    blocks = np.asarray(jax.jit(rows)(x, x))
    size = x[0].size
    assert blocks.shape == (6, 6, size, size)
    gram = blocks.transpose(0, 2, 1, 3).reshape(6 * size, 6 * size)
    assert np.allclose(gram, gram.T, atol=1e-12)
    assert np.linalg.eigvalsh(gram).min() > -1e-10
    assert np.trace(gram) > 1e-3


@every_kernel
def test_force_is_what_the_definition_says(make, shape, key):
    kernel, points = make(0.9), points_and_scores(key, shape)
    force = stein_force(kernel, *points)
    assert force.shape == points[0].shape
    assert np.allclose(force, defined_force(kernel, *points), atol=1e-9)


@pytest.mark.parametrize("name", ["imq", "c4", "so2", "distances", "e2", "moments"])
def test_compiled_force_equals_eager(name, key):
    make, _, shape = KERNELS[name]
    kernel, points = make(0.9), points_and_scores(key, shape)
    eager = kernel.stein_force(*points)
    assert np.allclose(eager, stein_force(kernel, *points), atol=1e-12)


@every_kernel
def test_force_and_its_gradient_are_finite_where_particles_meet(make, shape, key):
    kernel, x = make(0.7), jr.normal(key, (4, *shape), jnp.float32)
    x = x.at[1].set(x[0]).at[2].set(0)
    if len(shape) == 2:
        x = x.at[3, 1].set(x[3, 0])

    @jax.jit
    def values_and_gradients(y):
        force, pull_back = jax.vjp(lambda y: kernel.stein_force(y, y, -x), y)
        slopes = jax.vmap(jax.jacfwd(kernel.matrix, 1))(y, y)
        return force, pull_back(force), jax.vmap(kernel.matrix)(y, y), slopes

    values = jax.tree.leaves(values_and_gradients(x))
    assert all(value.dtype == jnp.float32 for value in values)
    assert all(np.all(np.isfinite(value)) for value in values)


@every_exact_kernel
def test_matrix_is_equivariant_in_each_argument(make, group, shape, key):
    kernel = make(0.8)
    keys = jr.split(key, 4)
    xs, ys = (jax.vmap(group.project)(jr.normal(k, (3, *shape))) for k in keys[:2])
    g, h = group.sample(keys[2], 3), group.sample(keys[3], 3)
    matrices = jax.jit(jax.vmap(kernel.matrix))
    act = jax.vmap(group.act)
    before, after = matrices(xs, ys), matrices(act(g, xs), act(h, ys))
    for i in range(3):
        left, right = (
            representation(group, jax.tree.map(lambda leaf, i=i: leaf[i], e), shape)
            for e in (g, h)
        )
        turned = left @ np.asarray(before[i]) @ right.T
        assert np.allclose(after[i], turned, atol=1e-10)
    assert np.max(np.abs(before)) > 1e-3


@pytest.mark.parametrize("name", ["rbf", "imq"])
def test_radial_kernels_are_jointly_invariant(name, key):
    kernel, group = KERNELS[name][0](0.8), Orthogonal(3)
    x, y = jr.normal(key, (2, 3))
    for g in group.sample(key, 3):
        assert np.allclose(kernel(group.act(g, x), group.act(g, y)), kernel(x, y))
    assert not np.allclose(kernel(group.act(g, x), y), kernel(x, y))


@pytest.mark.parametrize("base", [RBF(0.8), IMQ(0.8)])
def test_invariant_kernel_is_invariant_in_each_argument(base, key):
    group = Cyclic(4)
    kernel = Invariant(base, group)
    x, y = jr.normal(key, (2, 2))
    values = jax.vmap(jax.vmap(kernel, (None, 0)), (0, None))(
        group.orbit(x), group.orbit(y)
    )
    assert np.allclose(values, kernel(x, y))


@pytest.mark.parametrize("name", [name for name in KERNELS if name != "moments"])
def test_blocks_give_what_the_whole_sum_gives(name, key, monkeypatch):
    make, _, shape = KERNELS[name]
    kernel, points = make(0.9), points_and_scores(key, shape)
    whole = stein_force(kernel, *points)
    monkeypatch.setattr("equistein.kernels._blocks._MAX_BLOCK", 16)
    in_blocks = jax.jit(lambda *points: kernel.stein_force(*points))
    # 19 targets, 8 at a time: padded to three blocks of 7.
    assert "scan[" in str(in_blocks.trace(*points).jaxpr)
    assert np.allclose(in_blocks(*points), whole, atol=1e-12)


def relative_error_of_single_precision(kernel, x, y, s):
    force = stein_force(kernel, x, y, s)
    assert force.dtype == jnp.float32
    exact = stein_force(kernel, *(point.astype(jnp.float64) for point in (x, y, s)))
    return np.max(np.abs(np.asarray(force) - np.asarray(exact))) / np.max(np.abs(exact))


@every_kernel
def test_single_precision_is_close_to_double(make, shape, key):
    x, y, s = points_and_scores(key, shape, jnp.float32)
    assert relative_error_of_single_precision(make(0.9), x, y, s) < 1e-4


@pytest.mark.parametrize("name", KERNELS)
def test_single_precision_holds_far_from_the_origin(name, key):
    make, _, shape = KERNELS[name]
    x, y, s = points_and_scores(key, shape, jnp.float32)
    x, y = 1_000 + x, 1_000 + y
    assert relative_error_of_single_precision(make(0.9), x, y, s) < 2e-2


# ------------------------------------------------- one particle along its orbit

ORBITS = {
    "c4": (lambda: Equivariant(RBF(0.7), Cyclic(4)), RotatedGaussians(Cyclic(4))),
    "d5": (lambda: Equivariant(RBF(0.7), Dihedral(5)), RotatedGaussians(Dihedral(5))),
    "so3": (
        lambda: Equivariant(RBF(0.7), SpecialOrthogonal(3)),
        Shells((2.0, 4.0), 0.5, 3),
    ),
    "point cloud": (lambda: Pullback(RBF(0.7), DoubleWell().features), DoubleWell()),
    "planar point cloud": (
        lambda: Equivariant(RBF(2.0), PointCloud((0,) * 4, 2)),
        DoubleWell(),
    ),
    "gradient": (lambda: Gradient(RBF(2.0), DoubleWell().features), DoubleWell()),
    "moments": (
        # A large ridge, or solving for the weights amplifies the rounding.
        lambda: Moments(PairHistogram((0,) * 4, num_centers=8), ridge=0.1),
        DoubleWell(),
    ),
}


def errors_of_turning_one(kernel, target, optimizer, dtype, key):
    """Move one particle along its orbit; return the errors of it and of the others."""
    group = target.group
    point_key, element_key, run_key = jr.split(key, 3)
    x = 1.5 * jr.normal(point_key, (6, *_SHAPES[type(target), group]), dtype)
    x = jax.vmap(group.project)(x)
    sampler = SVGD(kernel, optimizer, score_clip=10.0)

    @jax.jit
    def three_steps(x):
        step = lambda _, state: sampler.step(run_key, state, target.log_density)[0]
        return jax.lax.fori_loop(0, 3, step, sampler.init(x)).particles

    @jax.jit
    def turn(point):
        elements = group.sample(element_key, 16)
        moved = jax.vmap(group.act, (0, None))(elements, x[2])
        gaps = jnp.sum((moved - x[2][None]).reshape(16, -1) ** 2, axis=1)
        farthest = jax.tree.map(lambda leaf: leaf[jnp.argmax(gaps)], elements)
        return group.act(farthest, point)

    straight, turned = three_steps(x), three_steps(x.at[2].set(turn(x[2])))
    assert np.max(np.abs(straight[2] - x[2])) > 0.01
    gaps = np.abs(turned - straight.at[2].set(turn(straight[2])))
    gaps = np.max(gaps.reshape(6, -1), axis=1)
    return gaps[2], np.max(np.delete(gaps, 2))


_SHAPES = {
    (RotatedGaussians, Cyclic(4)): (2,),
    (RotatedGaussians, Dihedral(5)): (2,),
    (Shells, Orthogonal(3)): (3,),
    (DoubleWell, PointCloud((0,) * 4, 2)): (4, 2),
}


@pytest.mark.parametrize(("make", "target"), ORBITS.values(), ids=ORBITS.keys())
@pytest.mark.parametrize(
    ("optimizer", "dtype", "tolerance"),
    [
        (optax.sgd(1.0), jnp.float64, 1e-10),
        (vector_adam(0.1), jnp.float64, 1e-10),
        (vector_adam(0.1), jnp.float32, 1e-5),
    ],
    ids=["sgd", "vector adam", "vector adam in single precision"],
)
def test_turning_one_particle_turns_its_path_and_no_other(
    make, target, optimizer, dtype, tolerance, key
):
    own, others = errors_of_turning_one(make(), target, optimizer, dtype, key)
    assert own < tolerance
    assert others < tolerance


@pytest.mark.parametrize("order", [4, 5])
def test_the_invariant_kernel_does_not_turn_the_path(order, key):
    target = RotatedGaussians(Cyclic(4) if order == 4 else Dihedral(5))
    kernel = Invariant(RBF(0.7), target.group)
    own, _ = errors_of_turning_one(kernel, target, optax.sgd(1.0), jnp.float64, key)
    assert own > 1e-2


def test_adam_does_not_turn_the_path(key):
    make, target = ORBITS["so3"]
    own, _ = errors_of_turning_one(make(), target, optax.adam(0.1), jnp.float64, key)
    assert own > 1e-2


# ------------------------------------------------------------ Stein's identity

_STEIN = {name: v for name, v in KERNELS.items() if name != "like distances"}
_CENTRED = [name for name, value in _STEIN.items() if len(value[2]) == 2]
_CENTRED.remove("c4 of clouds")


def largest_z_score(name, key, factor):
    """Return how far, in standard errors, the mean Stein force of exact samples is
    from zero, with the score of a standard normal law times `factor`."""
    make, _, shape = KERNELS[name]
    kernel = make(0.8)
    x_key, y_key = jr.split(key)
    x, y = jr.normal(x_key, (3, *shape)), jr.normal(y_key, (20_000, *shape))
    if name in _CENTRED:
        x, y = (z - jnp.mean(z, axis=1, keepdims=True) for z in (x, y))
    one = lambda y: kernel.stein_force(x, y[None], -factor * y[None])
    terms = np.asarray(jax.jit(jax.vmap(one))(y))
    mean, sd = terms.mean(axis=0), terms.std(axis=0)
    return np.max(np.abs(mean) / (sd / len(y) ** 0.5 + 1e-12))


@pytest.mark.parametrize("name", _STEIN)
def test_mean_stein_force_of_exact_samples_vanishes(name, key):
    assert largest_z_score(name, key, 1.0) < 5


@pytest.mark.parametrize("name", [n for n in _STEIN if "invariant" not in n])
def test_mean_stein_force_tells_a_wrong_score(name, key):
    assert largest_z_score(name, key, 2.0) > 5


def test_the_invariant_kernel_cannot_tell_a_wrong_score(key):
    assert largest_z_score("invariant c4", key, 2.0) < 5


# ------------------------------------------------------------ bandwidth, checks

RULED = {
    "rbf": (lambda: RBF(), None, (3,)),
    "c4": (lambda: Equivariant(RBF(), Cyclic(4)), Cyclic(4), (2,)),
    "so3": (
        lambda: Equivariant(RBF(), SpecialOrthogonal(3)),
        SpecialOrthogonal(3),
        (3,),
    ),
    "invariant": (lambda: Invariant(RBF(), Cyclic(4)), Cyclic(4), (2,)),
    "radius": (lambda: Pullback(RBF(), Radius()), Orthogonal(3), (3,)),
    **{
        name: (lambda group=group: Equivariant(RBF(), group), group, (3, group.dim))
        for name, group in _CLOUDS.items()
    },
    "gradient": (
        lambda: Gradient(RBF(), SortedDistances((0, 0, 1))),
        PointCloud((0, 0, 1), 2),
        (3, 2),
    ),
}
every_ruled_kernel = pytest.mark.parametrize(
    ("make", "group", "shape"), RULED.values(), ids=RULED.keys()
)


@every_ruled_kernel
@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_rule_gives_a_length_and_the_kernel_takes_it(make, group, shape, dtype, key):
    kernel, x = make(), jr.normal(key, (9, *shape), dtype)
    length = kernel.length(x)
    assert length.dtype == dtype
    assert 0.05 < length < 5
    fixed = kernel.with_length(length)
    assert fixed.rule is None
    assert fixed.length(x) == length
    if group is not None:  # distances are between orbits
        moved = jax.vmap(group.act)(group.sample(key, 9), x)
        assert np.allclose(kernel.length(moved), length, rtol=1e-4)


@every_ruled_kernel
def test_a_kernel_with_a_rule_asks_for_particles(make, group, shape, key):
    del group
    x = jr.normal(key, (2, *shape))
    with pytest.raises(ValueError, match="needs particles"):
        make().matrix(x[0], x[1])


@pytest.mark.parametrize(
    "name",
    [
        "c4 of clouds",
        "o3",
        "invariant c4",
        "distances",
        "e2",
        "se3",
        "gradient of distances",
        "moments",
    ],
)
def test_symmetric_kernel_accepts_its_targets_alone(name, key):
    make, _, shape = KERNELS[name]
    kernel, x = make(0.7), jr.normal(key, (8, *shape))
    ramp = jnp.arange(float(x[0].size)).reshape(shape)
    kernel.check_target(lambda x: -jnp.sum(x**2), x)
    with pytest.raises(InvarianceError, match="not invariant"):
        kernel.check_target(lambda x: jnp.sum(ramp * x), x)


@pytest.mark.parametrize(
    ("make", "shape"),
    [
        (KERNELS["c4"][0], (3,)),
        (KERNELS["so3"][0], (2,)),
        (KERNELS["so3"][0], (4, 3)),
        (KERNELS["radius in the plane"][0], (4, 2)),
        (KERNELS["distances"][0], (4, 2)),
        (KERNELS["distances"][0], (6,)),
        (KERNELS["invariant c4"][0], (3,)),
        (KERNELS["e2"][0], (4, 2)),
        (KERNELS["e2"][0], (3, 3)),
        (KERNELS["se3"][0], (9,)),
        (KERNELS["gradient of distances"][0], (4, 3)),
        (KERNELS["gradient of the radius"][0], (4, 2)),
        (KERNELS["moments"][0], (2, 2)),
    ],
)
def test_shapes_that_do_not_fit_are_refused(make, shape):
    with pytest.raises(ValueError, match="points of shape"):
        make(0.7).check_shape(shape)


@every_kernel
def test_shapes_that_fit_are_accepted(make, shape):
    make(0.7).check_shape(shape)


_NOT_NUMBERS = [0, -1.0, float("nan"), float("inf"), np.float64(-2.0)]
_NOT_SCALARS = [jnp.zeros(()), jnp.ones(2), jnp.array(3)]


@pytest.mark.parametrize("make", [RBF, IMQ])
@pytest.mark.parametrize("bandwidth", _NOT_NUMBERS + _NOT_SCALARS)
def test_a_wrong_bandwidth_is_refused(make, bandwidth, unchecked):
    with pytest.raises(ValueError, match="`bandwidth`, a positive length"):
        make(bandwidth)


@pytest.mark.parametrize("wrap", [Equivariant, Invariant])
def test_wrong_parts_of_a_symmetric_kernel_are_refused(wrap, unchecked):
    with pytest.raises(ValueError, match="needs `base`"):
        wrap(0.2, Cyclic(4))
    with pytest.raises(ValueError, match="needs `group`"):
        wrap(RBF(0.2), 4)
    with pytest.raises(ValueError, match="num_samples"):
        wrap(IMQ(0.2), PointCloud((0, 0), 2))
    with pytest.raises(ValueError, match="num_samples"):
        wrap(RBF(0.2), PointCloud((0, 0), 2), num_samples=0, key=jr.key(0))
    with pytest.raises(ValueError, match="`key`"):
        wrap(RBF(0.2), PointCloud((0, 0), 2), num_samples=4)


@pytest.mark.parametrize("wrap", [Pullback, Gradient])
def test_wrong_parts_of_a_kernel_of_features_are_refused(wrap, unchecked):
    with pytest.raises(ValueError, match=f"{wrap.__name__} needs `base`"):
        wrap(0.2, Radius())
    with pytest.raises(ValueError, match=f"{wrap.__name__} needs `features`"):
        wrap(RBF(0.2), Cyclic(4))


def test_wrong_parts_of_a_moments_kernel_are_refused(unchecked):
    with pytest.raises(ValueError, match="Moments needs `features`"):
        Moments(RBF(0.2))
    for ridge in (0.0, -1.0, float("nan")):
        with pytest.raises(ValueError, match="Moments needs `ridge` > 0"):
            Moments(Radius(), ridge=ridge)
    x = jnp.ones(3)
    with pytest.raises(ValueError, match=r"call kernel\.at\(particles\) first"):
        Moments(Radius()).matrix(x, x)
