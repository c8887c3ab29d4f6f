"""The scores of the experiment `images`, and their picture."""

import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from equistein.energies import JointEnergy
from equistein.metrics import outlier_scores
from equistein.networks import SteerableCNN
from experiments._image_models import model_of
from experiments._image_scores import detection, ImageSets, seen
from experiments.images import IMAGES


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
    found = detection(energy, sets, 13, (sets.train, sets.labels))
    kinds = {"test": sets.upright[:13]} | sets.outliers
    inside = outlier_scores(energy, kinds["test"])
    for name in ("dim", "bright"):
        outside = outlier_scores(energy, kinds[name])
        areas = [found[f"auroc_{name}_typicality"]]
        for score, values in inside.items():
            areas.append(found[f"auroc_{name}_{score}"])
            pairs = values[:, None] > outside[score][None]  # no two are equal
            assert np.isclose(areas[-1], np.mean(pairs))
        assert found[f"auroc_{name}_best"] == max(areas)


def test_a_classifier_sees_what_a_picture_shows(key):
    network = SteerableCNN((4, 4, 1), (2,), out_size=3, key=key)
    images = jr.uniform(key, (5, 4, 4, 1))
    loud = images.at[:, 0].set(9.0).at[:, 1].set(-9.0)
    shown = images.at[:, 0].set(1.0).at[:, 1].set(0.0)
    features = [seen(network, each)[0] for each in (loud, shown, images)]
    assert np.allclose(features[0], features[1])
    assert not np.allclose(features[0], features[2])


@pytest.mark.slow
def test_the_energy_with_reflections_has_them_and_the_other_does_not(key):
    config = IMAGES.presets["smoke"]
    train = config.sets.train.astype(float)
    known = train[:64], config.sets.labels[:64]
    point = train[0]
    for name, equal in (("density", False), ("density-mirrored", True)):
        energy = model_of(key, config, name, known).energy
        here, turned, mirrored = (
            float(energy(image)) for image in (point, point[::-1, ::-1], point[:, ::-1])
        )
        assert turned == pytest.approx(here, rel=1e-4)
        assert (mirrored == pytest.approx(here, rel=1e-4)) == equal
