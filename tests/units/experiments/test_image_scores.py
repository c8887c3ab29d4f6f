"""The scores of the experiment `images`, and their picture."""

import dataclasses

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from equistein.energies import JointEnergy
from equistein.metrics import auroc, energy_distance, outlier_scores
from equistein.networks import SteerableCNN
from equistein.plotting import reliability_diagram
from experiments._image_models import ImageSets, MODELS, seen
from experiments._image_scores import detection, halves, sample_distance
from experiments.images import IMAGES, model_of


def some_sets(key, num=31, side=4):
    keys = jr.split(key, 4)
    train, upright, dim, bright = (
        jr.uniform(key, (num, side, side, 1)) for key in keys
    )
    return ImageSets(
        train, jnp.arange(num) % 3, upright, upright, jnp.arange(num) % 3,
        {"dim": 0.1 * dim[:7], "bright": 3 * bright[:11]}, ("a", "b", "c"),
    )  # fmt: skip


@pytest.mark.slow
def test_each_kind_of_outliers_has_its_own_scores(key):
    set_key, net_key = jr.split(key)
    sets = some_sets(set_key)
    energy = JointEnergy(SteerableCNN((4, 4, 1), (2,), out_size=3, key=net_key))
    found, densities = detection(energy, sets, 13, (sets.train, sets.labels))
    kinds = {"test": sets.upright[:13]} | sets.outliers
    for name, points in kinds.items():
        assert np.allclose(densities[f"density_{name}"], -jax.vmap(energy)(points))
    inside = outlier_scores(energy, kinds["test"])
    for name in ("dim", "bright"):
        outside = outlier_scores(energy, kinds[name])
        areas = [found[f"auroc_{name}_typicality"]]
        for score, values in inside.items():
            areas.append(found[f"auroc_{name}_{score}"])
            assert np.isclose(areas[-1], auroc(values, outside[score]))
        assert found[f"auroc_{name}_best"] == max(areas)


def test_samples_are_compared_with_images_that_do_not_stand_in_for_them(key):
    sets = some_sets(key)
    first, second = halves(sets)
    assert np.array_equal(jnp.concatenate([first, second]), sets.upright)
    # No more are compared than a half has, so that the floor may have as many.
    more = jnp.concatenate([first, 100 + first])
    assert sample_distance(key, more, sets) == sample_distance(key, first, sets)
    far = sample_distance(key, 100 + first, sets)
    assert far > 10 * sample_distance(key, first, sets)


def test_samples_may_be_turned_in_any_way(key):
    sets = some_sets(key, 800)
    bright_above = sets.upright.at[:, :2].add(2.0)
    sets = dataclasses.replace(sets, upright=bright_above)
    first, second = halves(sets)
    below = first[:, ::-1]
    assert sample_distance(key, below, sets) < 0.1 * energy_distance(below, second)


def test_bins_of_a_few_points_have_no_dot():
    confidence, accuracy = np.array([0.2, 0.5, 0.9]), np.array([1.0, 0.4, 0.9])
    bins = {"model": (confidence, accuracy, np.array([19, 20, 61]) / 100)}
    figure = reliability_diagram(bins, ["note"], 100)
    (dots,) = (line for line in figure.axes[0].lines if line.get_marker() == "o")
    assert np.array_equal(dots.get_xdata(), [0.5, 0.9])


def test_a_classifier_sees_what_a_picture_shows(key):
    network = SteerableCNN((4, 4, 1), (2,), out_size=3, key=key)
    images = jr.uniform(key, (5, 4, 4, 1))
    loud = images.at[:, 0].set(9.0).at[:, 1].set(-9.0)
    shown = images.at[:, 0].set(1.0).at[:, 1].set(0.0)
    assert np.allclose(seen(network, loud).features, seen(network, shown).features)
    assert not np.allclose(seen(network, loud).features, seen(network, images).features)


@pytest.mark.slow
def test_the_energy_with_reflections_has_them_and_the_other_does_not(key):
    config = IMAGES.presets["smoke"]
    train = config.sets.train.astype(float)
    known = train[:64], config.sets.labels[:64]
    point = train[0]
    for name, equal in (("density", False), ("density-mirrored", True)):
        energy = model_of(key, config, MODELS[name], known).energy
        here, turned, mirrored = (
            float(energy(image)) for image in (point, point[::-1, ::-1], point[:, ::-1])
        )
        assert turned == pytest.approx(here, rel=1e-4)
        assert (mirrored == pytest.approx(here, rel=1e-4)) == equal
