import collections
import functools
import zlib

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
import pytest
from registries import classes_of, normal

from equistein.diffusion import AbstractNoiseEnergy, NoiseEnergy
from equistein.energies import (
    AbstractEnergy,
    KnownEnergy,
    LinearEnergy,
    SummedEnergy,
    TemperedEnergy,
)
from equistein.features import PairBasis
from equistein.groups import (
    check_invariance,
    Cyclic,
    Dihedral,
    ImageRotations,
    Orthogonal,
    PointCloud,
    SpecialOrthogonal,
    Trivial,
)
from equistein.models import (
    DenoisingSettings,
    energy_for,
    for_data,
    image_model,
    ImageSettings,
    kernel_for,
)
from equistein.networks import NoiseMLP
from equistein.samplers import SVGD

GROUPS = {  # for each kind of energy, a symmetry that asks for it
    "trivial": (Trivial(), (3, 2)),
    "cyclic": (Cyclic(4), (2,)),
    "dihedral on clouds": (Dihedral(3), (2, 2)),
    "rotations": (SpecialOrthogonal(2), (2,)),
    "orthogonal": (Orthogonal(3), (3,)),
    "cloud": (PointCloud("COO", 2), (3, 2)),
    "images": (ImageRotations(), (4, 4)),
}


GRAPH = DenoisingSettings(width=4, depth=1, sigma_min=0.3)


def plain(key, group, data):
    return energy_for(key, group, data, widths=(8,))


def joint(key, group, data):
    return energy_for(key, group, data, num_classes=3, widths=(8,), temperature=2.0)


def levels(key, group, data):
    if isinstance(group, Trivial):
        return NoiseEnergy(NoiseMLP(data[0].size, widths=(8,), key=key), data, 0.3)
    return for_data(key, group, data, settings=GRAPH).energy


def images(key, group, data):
    settings = ImageSettings(fields=(2,), num_blocks=1)
    classes = jnp.arange(len(data)) % 2
    return image_model(key, group, data, classes, settings).energy


def known(key, group, data):
    return KnownEnergy(lambda x: -jnp.sum(x**2) / 2, group)


def summed(key, group, data):
    parts = known(key, group, data), plain(key, group, data)
    return SummedEnergy([(2.0, parts[0]), (0.5, parts[1])])


def linear(key, group, data):
    basis = PairBasis(group.species, data, num_gaussians=3, powers=(2.0,))
    coefficients = jnp.abs(jr.normal(key, (basis.size(data.shape[1:]),)))
    return LinearEnergy(basis, coefficients=coefficients)


ENERGIES = {  # with the groups to try: adding an energy means adding a line here
    "plain": (plain, [name for name in GROUPS if name != "images"]),
    "joint": (joint, ["cyclic", "orthogonal"]),
    "conditional": (lambda *given: joint(*given).condition(1), ["cyclic", "cloud"]),
    "tempered": (
        lambda *given: TemperedEnergy(joint(*given).condition(2), 4.0), ["rotations"]
    ),
    "known": (known, ["cyclic"]),
    "summed": (summed, ["cyclic"]),
    "linear": (linear, ["cloud"]),
    "levels of noise": (levels, ["trivial", "cloud"]),
    "images of classes": (images, ["images"]),
    "images of one class": (lambda *given: images(*given).condition(1), ["images"]),
}  # fmt: skip


def energy_and_data(key, make, group, shape, dtype=jnp.float64):
    energy_key, data_key = jr.split(key)
    data = jax.jit(jax.vmap(group.project))(normal(data_key, (20, *shape), dtype))
    return make(energy_key, group, data), data


Case = collections.namedtuple("Case", "energy data group shape")
CASES = {
    f"{name} for {group}": (make, *GROUPS[group])
    for name, (make, groups) in ENERGIES.items()
    for group in groups
}


@functools.cache
def built(name):
    """Return each energy for each group, built once for all the tests of it."""
    make, group, shape = CASES[name]
    key = jr.key(zlib.crc32(name.encode()))
    return Case(*energy_and_data(key, make, group, shape), group, shape)


@pytest.fixture(scope="module", params=CASES)
def case(request):
    return built(request.param)


def in_single_precision(tree):
    narrow = {"float64": np.float32, "int64": np.int32}
    arrays, rest = eqx.partition(tree, eqx.is_array)
    cast = lambda x: x.astype(narrow.get(str(x.dtype), x.dtype))
    return eqx.combine(jax.tree.map(cast, arrays), rest)


@eqx.filter_jit
def values_and_scores(energy, points):
    return jax.vmap(jax.value_and_grad(energy.log_density))(points)


def test_every_energy_of_the_library_is_tried():
    names = [f"{name} for {groups[0]}" for name, (_, groups) in ENERGIES.items()]
    tried = {type(built(name).energy) for name in names}
    assert tried == classes_of(AbstractEnergy, "equistein.")


def test_energy_is_invariant_and_so_is_its_kernel(case):
    log_density = case.energy.log_density
    declared = case.energy.group(case.shape)
    for group in {case.group, declared}:
        check_invariance(log_density, group, case.data, tolerance=1e-9)
    case.energy.check_symmetry(case.data)
    kernel = kernel_for(case.energy, case.shape, 0.5)
    SVGD(kernel, optax.sgd(0.1)).check(log_density, case.data)


def points_to_try(data):
    data = np.asarray(data)
    return np.concatenate([data[:2], 0 * data[:1], 1_000 * data[:1]])


def test_energy_and_score_are_finite_everywhere(case):
    values, scores = values_and_scores(case.energy, points_to_try(case.data))
    assert values.dtype == jnp.float64
    assert scores.dtype == jnp.float64
    assert np.all(np.isfinite(values))
    assert np.all(np.isfinite(scores))


def test_energy_and_score_are_finite_in_single_precision(case):
    with jax.enable_x64(False):
        energy = in_single_precision(case.energy)
        points = points_to_try(np.asarray(case.data, np.float32))
        values, scores = values_and_scores(energy, points)
        assert values.dtype == jnp.float32
        assert scores.dtype == jnp.float32
        assert np.all(np.isfinite(values))
        assert np.all(np.isfinite(scores))


def test_walls_keep_the_density_normalizable(case):
    point = np.asarray(case.data)[0]
    points = np.stack([point, 10 * point, 30 * point, 100 * point])
    values, scores = values_and_scores(case.energy, points)
    assert np.all(np.diff(values) < 0)
    assert values[-1] < values[0] - 100
    assert np.sum(np.asarray(scores)[-1] * point) < 0


def test_every_level_of_noise_is_an_energy(key):
    group, shape = GROUPS["trivial"]
    energy, data = energy_and_data(key, levels, group, shape)
    assert isinstance(energy, AbstractNoiseEnergy)
    one = energy.at(energy.sigma_max)
    assert isinstance(one, AbstractEnergy)
    assert np.isfinite(one(energy.project(data[0])))
    assert energy.group(shape).order == 1


def test_logits_are_those_of_the_classes_or_an_error_that_says_why(case):
    num = case.energy.num_classes(case.shape)
    both = lambda energy, x: (energy.logits(x), energy.evaluate(x))
    if num is None:
        with pytest.raises(ValueError, match="has no classes"):
            eqx.filter_eval_shape(both, case.energy, case.data[0])
        return
    logits, evaluation = eqx.filter_jit(both)(case.energy, case.data[0])
    assert logits.shape == (num,)
    assert np.allclose(logits, evaluation.logits)
