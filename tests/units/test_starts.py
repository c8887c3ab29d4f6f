"""Where particles start, and epochs of a set number of batches."""

import dataclasses

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from equistein.energies import energy_for, JointEnergy
from equistein.groups import Cyclic, ImageRotations, PointCloud, Trivial
from equistein.networks import SteerableCNN
from equistein.training import (
    fit,
    FitConfig,
    load_fitted,
    Normals,
    save_fitted,
    start_for,
)

TINY = FitConfig(
    num_epochs=2, epoch_batches=3, batch_size=4, num_particles=5, num_steps=2,
    sample_steps=2, sample_at_once=6, start="normals", bandwidth=1.0,
)  # fmt: skip


def two_classes(key, num):
    """Return points of two elongated classes, some without a label."""
    labels = jnp.arange(num) % 3 - 1
    spread = jnp.where(labels[:, None] == 0, jnp.array([[0.2, 1.0]]), 0.5)
    return labels, 3.0 * labels[:, None].astype(float) + spread * jr.normal(
        key, (num, 2)
    )


def test_normals_have_the_mean_and_the_covariance_of_each_class(key):
    labels, data = two_classes(key, 384)
    start = Normals(data, Trivial(), labels, 2)
    for label in range(2):
        chosen = np.asarray(data[labels == label])
        drawn = np.asarray(start.sample(jr.fold_in(key, label), 20_000, label))
        error = (np.var(chosen, axis=0) / 20_000) ** 0.5
        assert np.all(np.abs(drawn.mean(axis=0) - chosen.mean(axis=0)) < 5 * error)
        wanted = np.cov(chosen.T, bias=True)
        error = np.sqrt(2 / 20_000) * np.outer(*[np.sqrt(np.diag(wanted))] * 2)
        assert np.all(np.abs(np.cov(drawn.T) - wanted) < 5 * error)
        other = np.cov(np.asarray(data[labels == 1 - label]).T, bias=True)
        assert np.any(np.abs(np.cov(drawn.T) - other) > 5 * error)


def test_normals_of_sorted_data_are_as_wide_as_all_of_it(key):
    data = jnp.concatenate([jnp.full((200, 1), -5.0), jnp.full((600, 1), 5.0)])
    drawn = np.asarray(Normals(data, Trivial()).sample(key, 4_000))
    assert np.isclose(drawn.std(), np.asarray(data).std(), rtol=0.05)


def test_normals_of_all_classes_are_a_mixture(key):
    labels, data = two_classes(key, 384)
    drawn = Normals(data, Trivial(), labels, 2).sample(key, 4_000)
    assert np.isclose(np.mean(np.asarray(drawn)[:, 0] > 1.5), 0.5, atol=0.05)


def test_normals_are_moved_by_the_group(key):
    data = jnp.array([[3.0, 0.0]]) + 0.1 * jr.normal(key, (50, 2))
    drawn = np.asarray(Normals(data, Cyclic(4)).sample(key, 4_000))
    angles = np.round(np.arctan2(drawn[:, 1], drawn[:, 0]) / (np.pi / 2)).astype(int)
    shares = np.bincount(angles % 4, minlength=4) / 4_000
    assert np.all(np.abs(shares - 0.25) < 5 * (0.25 * 0.75 / 4_000) ** 0.5)


def test_normals_stay_on_the_subspace_of_clouds(key):
    group = PointCloud((0, 0, 0), 2)
    data = jr.normal(key, (20, 3, 2))
    drawn = Normals(data, group).sample(key, 10)
    assert np.allclose(np.asarray(drawn).mean(axis=1), 0)


def test_a_class_without_examples_starts_like_all(key):
    labels, data = two_classes(key, 96)
    start = Normals(data, Trivial(), labels, 3)
    assert np.allclose(start.means[2], np.asarray(data).mean(axis=0))


def test_samples_of_a_class_start_in_it(key):
    data = jnp.concatenate([jnp.full((8, 2), -5.0), jnp.full((8, 2), 5.0)])
    data = data + 0.1 * jr.normal(key, data.shape)
    labels = jnp.repeat(jnp.arange(2), 8)
    energy = energy_for(key, Trivial(), data, num_classes=2, widths=(4,))
    config = dataclasses.replace(TINY, langevin=1e-8, stein_step=1e-8)
    fitted = fit(key, energy, data, config, labels=labels)
    for label, place in enumerate((-5.0, 5.0)):
        assert np.allclose(fitted.sample(key, 6, label=label), place, atol=1.0)


@pytest.mark.slow
def test_a_fit_that_starts_from_normals_is_saved_and_loaded(key, tmp_path):
    group, shape = ImageRotations(), (6, 6, 1)
    data = jr.uniform(key, (40, *shape))
    energy = JointEnergy(SteerableCNN(shape, (2, 2), out_size=2, key=key))
    labels = jnp.arange(40) % 2
    fitted = fit(key, energy, data, TINY, labels=labels)
    assert fitted.start.group == group
    save_fitted(tmp_path / "model.eqx", fitted, {"test": 1})
    other = JointEnergy(SteerableCNN(shape, (2, 2), out_size=2, key=jr.key(9)))
    like = jr.normal(key, (3, *shape))
    loaded = load_fitted(tmp_path / "model.eqx", other, like, TINY, {"test": 1})
    same = loaded.sample(key, 5, label=1) == fitted.sample(key, 5, label=1)
    assert np.all(np.asarray(same))


def test_epochs_have_as_many_batches_as_asked_for(key):
    data = jr.normal(key, (10, 2))
    for batches in (1, 7):  # less than a pass over the data, and more
        config = dataclasses.replace(TINY, epoch_batches=batches)
        energy = energy_for(key, Trivial(), data, widths=(4,))
        fitted = fit(key, energy, data, config)
        assert config.for_data(10).num_batches(10) == batches
        assert len(fitted.history["loss"]) == 2


def test_labels_alone_train_a_classifier(key):
    labels, data = two_classes(key, 300)
    energy = energy_for(key, Trivial(), data, num_classes=2, widths=(8,))
    config = dataclasses.replace(
        TINY, contrastive=0.0, num_epochs=5, epoch_batches=40, batch_size=32,
        learning_rate=1e-2,
    )  # fmt: skip
    fitted = fit(key, energy, data, config, labels=labels)
    assert fitted.history["accuracy"][-1] > 0.9
    assert "negative_energy" not in fitted.history
    broken = fit(key, energy, data, config, labels=jr.permutation(key, labels))
    assert broken.history["accuracy"][-1] < 0.75


def test_a_fit_without_negatives_scores_and_labels_is_refused(key):
    data = jr.normal(key, (10, 2))
    config = dataclasses.replace(TINY, contrastive=0.0)
    energy = energy_for(key, Trivial(), data, widths=(4,))
    with pytest.raises(ValueError, match="learns from labels alone, but `labels`"):
        fit(key, energy, data, config)


def test_the_settings_name_a_start(unchecked):
    with pytest.raises(ValueError, match="`start`, one of 'box' and 'normals'"):
        FitConfig(start="data")
    with pytest.raises(ValueError, match="`epoch_batches`"):
        FitConfig(epoch_batches=0)
    data = jnp.zeros((4, 2))
    box = start_for(dataclasses.replace(TINY, start="box"), data, Trivial(), None, None)
    assert not isinstance(box, Normals)


def test_the_network_built_for_images_halves_what_can_be_halved(key):
    for side, halvings in ((28, 2), (8, 1), (9, 0)):
        energy = energy_for(
            key, ImageRotations(), jr.uniform(key, (2, side, side)), num_classes=3
        )
        network = energy.network
        assert network.group((side, side)) == ImageRotations()
        assert len(network.pool_after) == halvings
        assert jax.eval_shape(network, jnp.zeros((side, side))).shape == (3,)
