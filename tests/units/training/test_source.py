import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
import pytest

import equistein as es
from equistein.data import spread_rows
from equistein.groups import Cyclic
from equistein.training import OnDisk, Stream
from short_fits import stop_after


@pytest.fixture
def on_disk(tmp_path):
    """Save an array and return it as one on disk."""

    def saved(values):
        np.save(tmp_path / "points.npy", np.asarray(values))
        return np.load(tmp_path / "points.npy", mmap_mode="r")

    return saved


class Loader:
    """Gives the same arrays each time round, with as many rows as it is told."""

    def __init__(self, points, size, labels=None):
        self.points, self.size, self.labels = np.asarray(points), size, labels

    def __iter__(self):
        for start in range(0, len(self.points), self.size):
            rows = slice(start, start + self.size)
            points, known = self.points[rows], self.labels
            yield points if known is None else (points, known[rows])


def model_for(data, labels=None):
    settings = es.models.ContrastiveSettings(
        num_particles=8, num_steps=2, batch_size=4, widths=(4,)
    )
    return es.models.for_data(
        jr.key(0), Cyclic(4), jnp.asarray(data), labels, settings=settings
    )


def fitted(data, **options):
    streamed = isinstance(data, Loader)
    model = model_for(data.points if streamed else data)
    source = Stream(data, 3) if streamed else OnDisk(data, None, 3)
    return es.fit(
        jr.key(1), model.energy, source, model.objective, num_epochs=4, batch_size=4,
        optimizer=optax.sgd(1e-3), **options,
    )  # fmt: skip


def opened(source, num, key):
    """Return a source with epochs of so many points."""
    source.preview(1)
    source.prepare(key, num, None)
    return source


def test_rows_are_spread_from_the_first_to_the_last():
    assert np.array_equal(spread_rows(10, 4), [0, 3, 6, 9])
    assert np.array_equal(spread_rows(3, 9), [0, 1, 2])


def test_all_points_are_read_before_any_comes_again(on_disk, key):
    data = on_disk(np.arange(20.0).reshape(10, 2))
    stream = opened(OnDisk(data, np.arange(10)), 4, key)
    rows = np.concatenate([stream.epoch_indices(number) for number in range(5)])
    for turn in (rows[:10], rows[10:]):
        assert sorted(turn) == list(range(10))
    assert not np.array_equal(rows[:10], rows[10:])
    again = opened(OnDisk(data), 4, key)
    assert np.array_equal(
        again.epoch_indices(3), stream.epoch_indices(3)
    )  # as after resuming
    again.epoch_points(0)
    again.prepare(jr.key(9), 4, None)  # for a second fit
    other = opened(OnDisk(data), 4, jr.key(9))
    assert np.array_equal(again.epoch_indices(1), other.epoch_indices(1))
    assert np.array_equal(again.epoch_points(1)[0], other.epoch_points(1)[0])
    points, labels = stream.epoch_points(1)
    assert np.array_equal(
        np.asarray(points), np.asarray(data)[np.sort(stream.epoch_indices(1))]
    )
    assert np.array_equal(labels, np.sort(stream.epoch_indices(1)))
    many = opened(OnDisk(data), 25, key).epoch_indices(0)
    assert np.bincount(many).tolist() == pytest.approx([2.5] * 10, abs=0.5)


def test_an_iterable_is_cut_into_epochs_and_begins_again(key):
    points = np.arange(14.0).reshape(7, 2)
    stream = Stream(Loader(points, 3, np.arange(7)), 4)
    assert np.array_equal(stream.preview(1)[0], points[:4])
    opened(stream, 5, key)
    found = [stream.epoch_points(number) for number in range(3)]
    rows = np.arange(15) % 7
    assert np.array_equal(np.concatenate([labels for _, labels in found]), rows)
    assert np.array_equal(np.concatenate([x for x, _ in found]), points[rows])
    again = opened(Stream(Loader(points, 2, np.arange(7)), 4), 5, key)
    assert np.array_equal(again.epoch_points(2)[1], rows[10:])  # as after resuming


@pytest.mark.parametrize("kind", ["disk", "iterable"])
def test_a_fit_that_is_interrupted_goes_on_with_the_points_that_are_left(
    kind, on_disk, tmp_path, key
):
    values = jr.normal(key, (30, 2))
    data = on_disk(values) if kind == "disk" else Loader(values, 7)
    whole = fitted(data)
    path = tmp_path / "state.npz"
    with pytest.raises(KeyboardInterrupt):
        fitted(data, checkpoint=path, callbacks=[stop_after(3)])
    for _ in range(2):  # the second time it is finished
        again = fitted(data, checkpoint=path)
        assert np.array_equal(again.history["loss"], whole.history["loss"])
    if kind == "disk":
        with pytest.raises(es.training.CheckpointError):
            fitted(on_disk(jr.normal(jr.key(5), (30, 2))), checkpoint=path)


@pytest.mark.parametrize(
    "arrays",
    [
        iter([np.ones((3, 2))]),
        iter([]),
        [np.ones((3, 2)), np.ones((3, 3))],
        [np.ones((3, 2)), (np.ones((3, 2)), np.ones(3))],
        [np.ones((3, 2)), np.full((3, 2), np.nan)],
        [np.ones((3, 2), int)],
        [(np.ones((3, 2)), np.ones(2))],
        [(np.ones((3, 2)),) * 3],
    ],
)
def test_a_bad_iterable_is_refused(arrays):
    with pytest.raises(ValueError, match="arrays|points|labels"):
        Stream((each for each in arrays), 5).preview(1)


def test_points_may_come_alone_in_a_list(key):
    stream = Stream(([np.full((2, 2), i)] for i in (1.0, 2.0)), 4)
    points, _ = stream.preview(1)
    assert np.array_equal(points[:, 0], [1.0, 1.0, 2.0, 2.0])


def test_a_class_that_the_energy_does_not_have_is_told(on_disk):
    points = np.random.default_rng(0).normal(size=(40, 2))
    labels = np.arange(40) % 2
    model = model_for(points, labels)
    labels[30] = 7
    streamed = Stream(Loader(points, 5, labels), 3)
    for source in (streamed, OnDisk(on_disk(points), labels, 3)):
        with pytest.raises(ValueError, match="classes from 0 to 1"):
            es.fit(
                jr.key(1), model.energy, source, model.objective, num_epochs=9,
                batch_size=4,
            )  # fmt: skip


def test_what_is_no_source_is_told():
    model, loader = model_for(np.ones((9, 2))), Loader(np.ones((9, 2)), 4)
    for data, remedy in (("x.npy", "map_points"), (loader, "training.Stream")):
        with pytest.raises(ValueError, match=remedy):
            es.fit(jr.key(1), model.energy, data, model.objective, num_epochs=1)


@pytest.mark.parametrize(
    "values",
    [
        np.arange(40).reshape(20, 2),
        np.ones(20),
        np.where(np.arange(40).reshape(20, 2) == 31, np.nan, 1.0),
        np.ones((3, 2)),
    ],
)
def test_bad_data_on_disk_is_refused(values, on_disk):
    model = model_for(np.random.default_rng(0).normal(size=(20, 2)))
    source = on_disk(values)
    with pytest.raises(ValueError, match="data"):
        es.fit(
            jr.key(1), model.energy, source, model.objective, num_epochs=1, batch_size=4
        )
