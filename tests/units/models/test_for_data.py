"""What suits a group and data, and what is refused before anything is trained."""

import dataclasses

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from equistein.diffusion import NoiseConditionalScoreMatching, NoiseEnergy
from equistein.energies import (
    JointEnergy,
    LinearEnergy,
    PlainEnergy,
    SummedEnergy,
    TemperedEnergy,
)
from equistein.features import Concatenated, Coordinates, PairHistogram, Radius
from equistein.groups import (
    Cyclic,
    Dihedral,
    Direct,
    ImageRotations,
    Orthogonal,
    PeriodicCloud,
    PointCloud,
    SpecialOrthogonal,
    Trivial,
)
from equistein.kernels import Equivariant, Pullback, RBF
from equistein.models import (
    ComparedSettings,
    ContrastiveSettings,
    DenoisingSettings,
    energy_for,
    for_data,
    ImageSettings,
    kernel_for,
    LinearSettings,
    load,
)
from equistein.models._contrastive import features_of
from equistein.networks import (
    AbstractNetwork,
    FeatureNetwork,
    Symmetrized,
)
from equistein.samplers import AnnealedSMC, Langevin, SVGD
from equistein.targets import DoubleWell
from equistein.training import (
    Blurred,
    Box,
    ContrastiveDivergence,
    CrossEntropy,
    Normals,
    Reweighted,
    SquaredError,
    Sum,
)

GROUPS = {  # a group, the shape of a point, its network, kernel and features
    "trivial": (Trivial(), (2,), FeatureNetwork, RBF, Coordinates),
    "cyclic": (Cyclic(4), (2,), Symmetrized, Equivariant, Coordinates),
    "dihedral": (Dihedral(3), (2, 2), Symmetrized, Equivariant, Coordinates),
    "rotations": (SpecialOrthogonal(2), (2,), FeatureNetwork, Pullback, Radius),
    "orthogonal": (Orthogonal(3), (3,), FeatureNetwork, Pullback, Radius),
    "cloud": (PointCloud("COO", 2), (3, 2), FeatureNetwork, Pullback, Concatenated),
}
SMALL = ContrastiveSettings(
    widths=(4,), num_epochs=1, batch_size=8, num_particles=4, num_steps=2,
    sample_steps=4, sample_at_once=4,
)  # fmt: skip


def data_for(shape, num=20):
    return jr.normal(jr.key(0), (num, *shape))


@pytest.mark.parametrize(
    ("group", "shape", "network", "kernel", "features"), GROUPS.values(), ids=GROUPS
)
def test_each_symmetry_has_its_parts(group, shape, network, kernel, features):
    model = for_data(jr.key(1), group, data_for(shape), settings=SMALL)
    assert isinstance(model.energy, PlainEnergy)
    assert isinstance(model.energy.network, network)
    # The radius of a point knows no reflection: its group is the larger one.
    larger = Orthogonal if isinstance(group, SpecialOrthogonal) else type(group)
    assert type(model.energy.group(shape)) is larger
    assert isinstance(features_of(model.energy), features)
    negatives = model.objective.negatives
    for sampler in (negatives.sampler, model.generator.sampler):
        assert isinstance(sampler, SVGD)
        assert isinstance(sampler.kernel, kernel)
    assert isinstance(negatives.initial, Box)
    assert isinstance(kernel_for(model.energy, shape, 0.5), kernel)
    assert isinstance(kernel_for(TemperedEnergy(model.energy, 2.0), shape), kernel)


def test_graphs_are_trained_by_denoising(key):
    group, data = PointCloud("COO", 3), data_for((3, 3))
    settings = DenoisingSettings(width=4, depth=1)
    model = for_data(key, group, data, settings=settings, atomic_numbers=(6, 8, 8))
    assert isinstance(model.energy, NoiseEnergy)
    assert isinstance(model.objective, NoiseConditionalScoreMatching)
    assert isinstance(features_of(model.energy), PairHistogram)
    assert isinstance(model.generator.steps.kernel, Pullback)
    assert model.about == {"atomic_numbers": [6, 8, 8]}


def made(labels=None, data=None, **settings):
    settings = ContrastiveSettings(**{"widths": (4,), "batch_size": 8} | settings)
    data = data_for((2,)) if data is None else data
    return for_data(jr.key(1), Cyclic(4), data, labels, settings=settings)


def test_labels_choose_the_energy_and_the_objective():
    classes = np.arange(20) % 3 - 1
    joint = made(classes, label_weight=0.5)
    assert isinstance(joint.energy, JointEnergy)
    assert joint.energy.num_classes((2,)) == 2
    (one, divergence), (weight, supervised) = joint.objective.terms
    assert (one, weight) == (1.0, 0.5)
    assert isinstance(divergence, ContrastiveDivergence)
    assert isinstance(supervised, CrossEntropy)
    assert isinstance(made(classes, label_weight=0.0).objective, ContrastiveDivergence)
    known = made(np.linspace(0, 1, 20))
    assert isinstance(known.energy, PlainEnergy)
    assert isinstance(known.objective.terms[1][1], SquaredError)
    blurred = made(classes, data_noise=0.1).objective
    assert isinstance(blurred, Blurred)
    assert isinstance(blurred.objective, Sum)
    # Known energies are those of the points themselves.
    (_, first), (_, second) = made(
        np.linspace(0, 1, 20), data_noise=0.1
    ).objective.terms
    assert isinstance(first, Blurred)
    assert isinstance(second, SquaredError)


def test_settings_choose_the_parts():
    classes = np.arange(20) % 2
    assert made(classes, temperature=2.0).energy.temperature == 2.0
    divergence = made(classes, buffer_size=300).objective.terms[0][1]
    assert divergence.negatives.buffer_size == 300
    plain = made(kernel="plain", bandwidth=0.7).generator.sampler
    assert isinstance(plain.kernel, RBF)
    assert isinstance(made(kernel="independent").generator.sampler, Langevin)
    weighted = made(classes, kernel="independent", negatives="reweighted")
    assert isinstance(weighted.objective.terms[0][1].negatives, Reweighted)
    assert isinstance(weighted.generator.sampler, AnnealedSMC)
    normals = made(classes, initial="normals").generator.initial
    assert isinstance(normals, Normals)
    assert normals.means.shape == (2, 2)
    assert isinstance(made(temperature=2.0).energy, TemperedEnergy)


def test_step_sizes_left_open_are_set_by_the_data():
    data = data_for((2,)).at[0].set(jnp.array([4.0, 0.0]))
    data = jnp.clip(data, -4.0, 4.0)
    sampler = lambda **settings: made(data=data, **settings).objective.negatives.sampler
    reach = float(jnp.max(jnp.abs(data)))
    found = sampler()
    assert np.isclose(found.langevin, (0.01 * reach) ** 2)
    assert np.isclose(found.score_clip, 450 / reach)
    assert found.optimizer is None
    assert np.isclose(found.factor, (0.01 * reach) ** 2)
    given = sampler(langevin_step_size=0.5, stein_step_size=0.25, score_clip=7.0)
    assert (given.langevin, given.score_clip) == (0.5, 7.0)
    assert given.factor == 0.25
    assert sampler(langevin_step_size=0.0).langevin == 0.0


def test_new_samples_cool_at_the_end():
    model = made(sample_steps=100, cooling_fraction=0.3, langevin_step_size=0.5)
    step = model.generator.sampler.langevin
    assert [float(step(jnp.asarray(n, float))) for n in (0, 70)] == [0.5, 0.5]
    assert np.isclose(step(jnp.asarray(85.0)), 0.5 * (1 - 0.95 / 2))
    assert np.isclose(step(jnp.asarray(100.0)), 0.5 * 0.05)


@pytest.mark.parametrize(
    ("num", "epochs"), [(2_000, 60), (1_280, 60), (1_000, 72), (255, 500), (128, 500)]
)
def test_epochs_left_open_make_five_hundred_batches_or_sixty(num, epochs, key):
    data = data_for((2,), num)
    settings = ContrastiveSettings(widths=(4,))
    model = for_data(key, Trivial(), data, settings=settings)
    assert model.num_epochs == epochs
    assert model.epoch_batches == num // 128


class Round(AbstractNetwork):
    """A network with a continuous symmetry but no features."""

    def __call__(self, point):
        return -jnp.sum(point**2)

    def group(self, shape):
        return Orthogonal(shape[-1])


def test_an_unknown_continuous_group_has_neither_network_nor_kernel(key):
    group = Direct((SpecialOrthogonal(2), (2,)), (Trivial(), (1,)))
    for make in (energy_for, for_data):
        with pytest.raises(ValueError, match="No invariant features are known"):
            make(key, group, data_for((3,)))
    with pytest.raises(ValueError, match="kernel"):
        kernel_for(PlainEnergy(Round()), (3,), 0.5)


@pytest.mark.parametrize(
    ("group", "shape", "words"),
    [
        (Cyclic(4), (3,), "acts on points of shape"),
        (SpecialOrthogonal(3), (4, 3), "one vector"),
        (PointCloud((0, 0), 2, reflections=False), (2, 2), "mirror images"),
        (PointCloud((0, 0), 2), (3, 2), "acts on points of shape"),
        (PeriodicCloud((0, 0), (9, 9), reflections=False), (2, 2), "with reflections"),
    ],
)
def test_a_symmetry_that_does_not_suit_is_refused(group, shape, words, key):
    with pytest.raises(ValueError, match=words):
        for_data(key, group, data_for(shape))


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ({"settings": DenoisingSettings(), "labels": np.arange(20) % 2}, "classes"),
        ({"settings": DenoisingSettings(), "group": Trivial()}, "PointCloud"),
        ({"settings": ImageSettings()}, "ImageRotations"),
        (
            {"settings": SMALL, "group": ImageRotations(), "data": data_for((4, 4))},
            "image_model",
        ),
        ({"labels": np.zeros(20, int)}, "the class 0 alone"),
        ({"data": data_for((2, 3)).at[:, 1].set(3.0), "group": Trivial()}, "constant"),
    ],
)
def test_what_does_not_go_together_is_refused(option, words, key, unchecked):
    given = {"group": PointCloud("CO", 3), "data": data_for((2, 3))} | option
    with pytest.raises(ValueError, match=words):
        for_data(key, **given)


@pytest.mark.parametrize("num", [1, 0, -2])
def test_one_class_is_no_joint_energy(num, key):
    with pytest.raises(ValueError, match="`num_classes`"):
        energy_for(key, Trivial(), data_for((2,)), num_classes=num)


def test_a_model_is_checked_before_it_is_trained(key):
    data, labels = data_for((2,)), np.arange(20) % 2
    model = for_data(key, Cyclic(4), data, labels, settings=SMALL)
    model.check(key, data, labels)
    for points, known, name in (
        (data[:5], labels[:5], "data"),
        (data.at[3, 0].set(jnp.nan), labels, "data"),
        (data, None, "labels"),
        (data, labels[:-1], "labels"),
        (data, labels + 1, "labels"),
    ):
        with pytest.raises(ValueError, match=f"`{name}`"):
            model.check(key, points, known)
    plain = for_data(key, Cyclic(4), data, settings=SMALL)
    with pytest.raises(ValueError, match="no use of them"):
        plain.check(key, data, labels)


def test_graphs_see_a_quarter_further_than_the_data(key):
    data = data_for((2, 3))
    settings = DenoisingSettings(width=4, depth=1)
    energy = for_data(key, PointCloud("CO", 3), data, settings=settings).energy
    gaps = jnp.linalg.norm(data[:, 0] - data[:, 1], axis=1)
    assert np.isclose(energy.network.reach, 1.25 * jnp.max(gaps))
    assert np.isclose(energy.sigma_min, jnp.median(gaps) / 20)


SMALL_GRAPH = dict(
    num_epochs=1, epoch_batches=2, width=4, depth=1, sample_steps=3, sample_at_once=64,
    num_gaussians=2,
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The standard error of")
def test_a_graph_network_corrects_a_solve(key, tmp_path):
    target = DoubleWell()
    data = target.sample(key, 200)
    settings = ComparedSettings(**SMALL_GRAPH, takes_best=False)
    model = for_data(key, target.group, data, settings=settings)
    model.check(key, data)
    fitted = model.fit(key, data)
    assert isinstance(fitted.energy, SummedEnergy)
    assert "Taken: linear+graph" in fitted.about["comparison"]
    assert fitted.sample(key, 3).shape == (3, 4, 2)
    assert isinstance(features_of(fitted.energy), PairHistogram)
    fitted.save(tmp_path / "both.eqx")
    again = load(tmp_path / "both.eqx").energy
    assert np.allclose(again(data[0]), fitted.energy(data[0]))
    with pytest.raises(ValueError, match="PointCloud"):
        for_data(key, Trivial(), data_for((2,)), settings=settings)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The standard error of")
def test_the_best_on_held_out_points_is_taken(key):
    target = DoubleWell()
    data = target.sample(key, 200)
    forces = np.asarray(jax.vmap(jax.grad(target.log_density))(data))
    model = for_data(key, target.group, data, settings=ComparedSettings(**SMALL_GRAPH))
    for known in (None, forces):
        model = dataclasses.replace(model, forces=known)
        fitted = model.fit(key, data)
        # A network that saw two batches is worse than the solve.
        assert isinstance(fitted.energy, LinearEnergy)
        words = fitted.about["comparison"].replace(",", "").split()
        loss = {n: float(words[words.index(n) + 1]) for n in ("linear", "graph")}
        assert known is not None or loss["linear"] < loss["graph"]


def test_densities_keep_their_narrowest_directions(key):
    data = jnp.array([[0.0, 0.0], [1.0, 0.0]])[None] * jnp.ones((50, 1, 1))
    data = data.at[:, 1, 0].add(0.03 * jr.normal(key, (50,)))
    for ending, expected in (("mean", 1 / 20), ("flow", jnp.std(data[:, 1, 0]) / 6)):
        settings = DenoisingSettings(width=4, depth=1, ending=ending)
        group = PointCloud("HF", 2)
        model = for_data(key, group, data, settings=settings, atomic_numbers=(1, 9))
        assert np.isclose(model.energy.sigma_min, expected, rtol=0.05)
        steps = model.generator.steps
        assert (steps.temperature, steps.kernel is None) == (
            (0.7, False) if ending == "mean" else (1.0, True)
        )


def test_waves_are_added_to_the_normal_distribution_of_the_data(key):
    mixing = jnp.array([[2.0, 0.0], [1.9, 0.3]])  # a narrow direction, aslant
    points = jr.normal(key, (1_500, 2)) @ mixing.T
    settings = LinearSettings(num_waves=20, moment_samples=0)
    fitted = for_data(key, Trivial(), points, settings=settings).fit(key, points)
    right = -jnp.linalg.solve(mixing @ mixing.T, points.T).T
    found = jax.vmap(jax.grad(fitted.log_density))(points)
    error = jnp.linalg.norm(found - right) / jnp.linalg.norm(right)
    assert error < 0.1, error


@pytest.mark.parametrize(("num", "epochs"), [(100, 300), (6_000, 375), (20_000, 600)])
def test_many_clouds_are_learned_for_longer(num, epochs, key):
    data = jr.normal(key, (num, 3, 2))
    settings = DenoisingSettings(width=4, depth=1, sigma_min=0.1)
    group = PointCloud((0,) * 3, 2)
    model = for_data(key, group, data, settings=settings)
    assert (model.num_epochs, model.epoch_batches) == (epochs, 64)
