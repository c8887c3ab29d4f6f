import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
import pytest

import equistein as es
from equistein.groups import Cyclic
from equistein.training._source import OnDisk


@pytest.fixture
def on_disk(tmp_path):
    """Save an array and return it as one on disk."""

    def saved(values):
        np.save(tmp_path / "points.npy", np.asarray(values))
        return np.load(tmp_path / "points.npy", mmap_mode="r")

    return saved


def model_for(data):
    settings = es.models.ContrastiveSettings(
        num_particles=8, num_steps=2, batch_size=4, widths=(4,)
    )
    return es.models.for_data(
        jr.key(0), Cyclic(4), jnp.asarray(data), settings=settings
    )


def fitted(data, **options):
    model = model_for(data)
    defaults = {"num_epochs": 4, "batch_size": 4, "epoch_batches": 3}
    return es.fit(
        jr.key(1), model.energy, data, model.objective, optimizer=optax.sgd(1e-3),
        **defaults | options,
    )  # fmt: skip


def test_all_points_are_read_before_any_comes_again(on_disk, key):
    data = on_disk(np.arange(20.0).reshape(10, 2))
    stream = OnDisk(data, jnp.arange(10), key, model_for(data).energy)
    rows = np.concatenate([stream.rows(number, 4) for number in range(5)])
    for turn in (rows[:10], rows[10:]):
        assert sorted(turn) == list(range(10))
    assert not np.array_equal(rows[:10], rows[10:])
    again = OnDisk(data, None, key, model_for(data).energy)
    assert np.array_equal(again.rows(3, 4), stream.rows(3, 4))  # as after going on
    points, labels = stream.epoch(1, 4)
    assert np.array_equal(
        np.asarray(points), np.asarray(data)[np.sort(stream.rows(1, 4))]
    )
    assert np.array_equal(labels, np.sort(stream.rows(1, 4)))
    many = again.rows(0, 25)
    assert np.bincount(many).tolist() == pytest.approx([2.5] * 10, abs=0.5)


def test_a_fit_from_disk_goes_on_to_the_same_numbers(on_disk, tmp_path, key):
    data = on_disk(jr.normal(key, (30, 2)))
    whole = fitted(data)
    path = tmp_path / "state.eqx"
    fitted(data, checkpoint=path)
    again = fitted(data, checkpoint=path)
    assert np.array_equal(again.history["loss"], whole.history["loss"])
    other = on_disk(jr.normal(jr.key(5), (30, 2)))
    with pytest.raises(es.training.CheckpointError):
        fitted(other, checkpoint=path)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.arange(40).reshape(20, 2), "must be floating point"),
        (np.ones(20), "must be floating point of shape"),
        (np.where(np.arange(40).reshape(20, 2) == 31, np.nan, 1.0), "at index 15"),
        (np.ones((3, 2)), "a batch of 4"),
    ],
)
def test_bad_data_on_disk_is_refused(values, message, on_disk):
    good = np.random.default_rng(0).normal(size=(20, 2))
    model = model_for(good)
    with pytest.raises(ValueError, match=message):
        es.fit(
            jr.key(1), model.energy, on_disk(values), model.objective, num_epochs=1,
            batch_size=4,
        )  # fmt: skip
