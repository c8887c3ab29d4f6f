import collections
import zlib

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from jax.scipy.special import logsumexp

from equistein.energies import (
    AbstractEnergy,
    energy_for,
    formulas_energy_for,
    graph_energy_for,
    JointEnergy,
    kernel_for,
    LeastNoise,
    NoiseEnergy,
    outlier_scores,
    PlainEnergy,
    TemperedEnergy,
)
from equistein.groups import (
    check_invariance,
    Cyclic,
    Dihedral,
    Orthogonal,
    PointCloud,
    SpecialOrthogonal,
    Trivial,
)
from equistein.kernels import Equivariant, Median, Pullback, RBF
from equistein.networks import AbstractNetwork, NoiseMLP

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
NUM_CLASSES = 3


def plain(key, group, data):
    return energy_for(key, group, data, widths=(8,))


def joint(key, group, data):
    return energy_for(key, group, data, num_classes=NUM_CLASSES, widths=(8,))


def levels(key, group, data):
    if isinstance(group, Trivial):
        return NoiseEnergy(NoiseMLP(data[0].size, widths=(8,), key=key), data, 0.3)
    return graph_energy_for(key, group, data, width=4, depth=1, noise=0.3)


def formulas(key, group, data):
    labels, atomic_numbers = jnp.arange(len(data)) % 2, ((6, 8), (6, 8, 8))
    return formulas_energy_for(
        key,
        ("CO", "COO"),
        data,
        labels,
        atomic_numbers=atomic_numbers,
        width=4,
        depth=1,
        noise=0.3,
    )


ENERGIES = {  # adding an energy to the library means adding a line here
    "plain": plain,
    "joint": joint,
    "conditional": lambda *arguments: joint(*arguments).given(1),
    "tempered": lambda *arguments: TemperedEnergy(joint(*arguments).given(2), 4.0),
    "levels of noise": levels,
    "the least noise": lambda *arguments: LeastNoise(levels(*arguments)),
    "several formulas": formulas,
}
SOME = {
    "levels of noise": ("trivial", "cloud"),
    "the least noise": ("cloud",),
    "several formulas": ("trivial",),
}


def energy_and_data(key, make, group, shape, dtype=jnp.float64):
    energy_key, data_key = jr.split(key)
    data = jax.vmap(group.project)(jr.normal(data_key, (20, *shape), dtype))
    return make(energy_key, group, data), data


Case = collections.namedtuple("Case", "energy data group shape")
CASES = {
    f"{name} for {group}": (make, *GROUPS[group])
    for name, make in ENERGIES.items()
    for group in SOME.get(name, GROUPS)
}


@pytest.fixture(scope="module", params=CASES)
def case(request):
    """Each energy for each group, built once for all the tests of it."""
    make, group, shape = CASES[request.param]
    key = jr.key(zlib.crc32(request.param.encode()))
    return Case(*energy_and_data(key, make, group, shape), group, shape)


@eqx.filter_jit
def values_and_scores(energy, points):
    return jax.vmap(jax.value_and_grad(energy.log_density))(points)


def test_energy_is_invariant_and_so_is_its_kernel(case):
    log_density = case.energy.log_density
    declared = case.energy.group(case.shape)
    check_invariance(log_density, case.group, case.data, tolerance=1e-9)
    check_invariance(log_density, declared, case.data, tolerance=1e-9)
    kernel = case.energy.kernel(case.shape, 0.5)
    kernel.check(log_density, case.data)
    assert isinstance(case.energy.kernel(case.shape, None).bandwidth, Median)


def points_to_try(data):
    return jnp.concatenate([data[:2], 0 * data[:1], 1_000 * data[:1]])


def test_energy_and_score_are_finite_everywhere(case):
    values, scores = values_and_scores(case.energy, points_to_try(case.data))
    assert values.dtype == jnp.float64
    assert scores.dtype == jnp.float64
    assert np.all(np.isfinite(values))
    assert np.all(np.isfinite(scores))


@pytest.mark.parametrize(("make", "group", "shape"), CASES.values(), ids=CASES.keys())
def test_energy_and_score_are_finite_in_single_precision(make, group, shape, key):
    # Weights take the default precision, so the narrow one runs as users run it.
    with jax.enable_x64(False):
        energy, data = energy_and_data(key, make, group, shape, jnp.float32)
        values, scores = values_and_scores(energy, points_to_try(data))
        assert values.dtype == jnp.float32
        assert scores.dtype == jnp.float32
        assert np.all(np.isfinite(values))
        assert np.all(np.isfinite(scores))


def test_compiled_energy_equals_eager(case):
    point = case.data[0]
    values, scores = values_and_scores(case.energy, case.data[:4])
    assert np.isclose(-values[0], case.energy(point))
    assert np.isclose(values[0], case.energy.log_density(point))
    assert np.allclose(-scores[0], jax.grad(case.energy)(point), atol=1e-10)


def test_walls_keep_the_density_normalizable(case):
    point = case.data[0]
    points = jnp.stack([point, 10 * point, 30 * point, 100 * point])
    values, scores = values_and_scores(case.energy, points)
    assert np.all(np.diff(values) < 0)
    assert values[-1] < values[0] - 100
    assert jnp.sum(scores[-1] * point) < 0


def test_training_leaves_the_data_s_constants_alone(key):
    energy, data = energy_and_data(key, plain, Orthogonal(3), (3,))
    gradient = eqx.filter_grad(lambda energy: energy(3 * data[0]))(energy).network
    for name in ("mean", "scale", "low", "high"):
        assert np.allclose(getattr(gradient, name), 0)
    weights = jax.tree.leaves(eqx.filter(gradient.network, eqx.is_inexact_array))
    assert max(np.max(np.abs(weight)) for weight in weights) > 0


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


@pytest.mark.parametrize("num", [1, 0, -2])
def test_one_class_is_no_joint_energy(num, key):
    with pytest.raises(ValueError, match="`num_classes` >= 2.*nothing to tell apart"):
        energy_for(key, Trivial(), jr.normal(key, (8, 2)), num_classes=num)


# ------------------------------------------------------------ what they mean


class Table(AbstractNetwork):
    """Three linear logits of a number, to compute with by hand."""

    slopes: jax.Array

    def __call__(self, point):
        return self.slopes * jnp.sum(point)

    def group(self, shape):
        return Trivial()


TABLE = Table(jnp.array([0.0, 1.0, -2.0]))


def test_plain_energy_is_minus_the_network():
    energy = PlainEnergy(Table(jnp.array(2.0)))
    assert energy(jnp.array([1.5])) == -3.0
    assert energy.log_density(jnp.array([1.5])) == 3.0


def test_joint_energy_by_hand():
    energy, x = JointEnergy(TABLE), jnp.array([0.5])
    logits = np.array([0.0, 0.5, -1.0])
    assert np.allclose(energy.logits(x), logits)
    assert np.isclose(energy(x), -np.log(np.sum(np.exp(logits))))
    for label, logit in enumerate(logits):
        assert np.isclose(energy.joint(x, label), -logit)
        assert np.isclose(energy.given(label)(x), -logit)
    assert energy.num_classes((1,)) == 3


@every_group
def test_joint_energy_is_the_soft_minimum_of_the_classes(group, shape, key):
    energy, data = energy_and_data(key, joint, group, shape)
    assert energy.num_classes(shape) == NUM_CLASSES
    classes = [energy.given(label)(data[0]) for label in range(NUM_CLASSES)]
    assert np.isclose(energy(data[0]), -logsumexp(-jnp.stack(classes)))
    assert energy(data[0]) < min(classes)
    # p(y | x) = exp(E(x) - E(x, y)), as the logits' softmax says.
    chances = jax.nn.softmax(energy.logits(data[0]))
    assert np.allclose(np.exp(energy(data[0]) - jnp.stack(classes)), chances)


def test_tempered_energy_is_divided(key):
    energy, data = energy_and_data(key, plain, Cyclic(4), (2,))
    assert np.isclose(TemperedEnergy(energy, 4.0)(data[0]), energy(data[0]) / 4)
    twice = TemperedEnergy(TemperedEnergy(energy, 4.0), 0.5)
    assert np.isclose(twice(data[0]), energy(data[0]) / 2)


@pytest.mark.parametrize("temperature", [0.0, -1.0, float("nan"), float("inf")])
def test_a_temperature_that_is_none_is_refused(temperature):
    with pytest.raises(ValueError, match="`temperature` > 0, but got"):
        TemperedEnergy(PlainEnergy(TABLE), temperature)


# ------------------------------------------------------------ kernels


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("trivial", RBF), ("cyclic", Equivariant), ("dihedral on clouds", Equivariant),
        ("rotations", Pullback), ("orthogonal", Pullback), ("cloud", Pullback),
    ],
)  # fmt: skip
def test_each_symmetry_has_its_kernel(name, kind, key):
    group, shape = GROUPS[name]
    energy, _ = energy_and_data(key, plain, group, shape)
    assert isinstance(energy.kernel(shape, 0.5), kind)
    assert isinstance(TemperedEnergy(energy, 2.0).kernel(shape, 0.5), kind)


class Round(AbstractNetwork):
    """A network with a continuous symmetry but no features."""

    def __call__(self, point):
        return -jnp.sum(point**2)

    def group(self, shape):
        return Orthogonal(shape[-1])


def test_a_network_without_features_has_no_kernel():
    with pytest.raises(ValueError, match="give `fit` a `kernel`"):
        kernel_for(Round(), (3,), 0.5)


# ------------------------------------------------------------ scores of outliers


def test_outlier_scores_by_hand():
    points = jnp.array([[0.5], [-1.0]])
    logits = np.array([[0.0, 0.5, -1.0], [0.0, -1.0, 2.0]])
    chances = np.exp(logits) / np.sum(np.exp(logits), axis=1, keepdims=True)
    found = outlier_scores(JointEnergy(TABLE), points)
    assert np.allclose(found["log_density"], np.log(np.sum(np.exp(logits), axis=1)))
    assert np.allclose(found["confidence"], chances.max(axis=1))
    slopes = np.abs(chances @ np.asarray(TABLE.slopes))
    assert np.allclose(found["gradient_norm"], -slopes)
    only = outlier_scores(PlainEnergy(Table(jnp.array(2.0))), points)
    assert set(only) == {"log_density", "gradient_norm"}
    assert np.allclose(only["gradient_norm"], -2.0)


# ------------------------------------------------------------ the interface


def test_every_energy_of_the_library_is_tried():
    tried = {type(make(jr.key(0), Trivial(), jr.normal(jr.key(1), (8, 3, 2))))
             for make in ENERGIES.values()}  # fmt: skip
    known = {
        cls for cls in AbstractEnergy.__subclasses__()
        if cls.__module__.startswith("equistein.")
    }  # fmt: skip
    assert tried == known
