"""Monitors, and functions that are told of each epoch and may end a fit."""

import jax.random as jr
import numpy as np
import pytest
from by_hand import bowl, fit

from equistein.training import Monitor
from short_fits import same


@pytest.fixture
def data(key):
    return jr.normal(key, (16, 1))


def precision(energy):
    return {"precision": energy.precision}


def test_a_monitor_looks_now_and_then(key, data):
    fitted = fit(
        key, bowl(2.0), data, num_epochs=5, ema=0.5, callbacks=[Monitor(precision, 2)]
    )
    seen = fitted.history["precision"]
    assert np.array_equal(np.isfinite(seen), [False, True, False, True, True])
    assert seen[-1] == fitted.energy.precision  # the running mean
    assert seen[1] != seen[3]


def test_a_monitor_does_not_change_the_fit(key, data):
    plain = fit(key, bowl(2.0), data, num_epochs=3)
    watched = fit(key, bowl(2.0), data, num_epochs=3, callbacks=[Monitor(precision)])
    assert same(plain.energy, watched.energy)


def test_a_function_is_told_of_each_epoch_with_what_came_before(key, data):
    told = []
    callbacks = [Monitor(precision), told.append]
    fitted = fit(key, bowl(), data, num_epochs=3, callbacks=callbacks)
    assert [row["epoch"] for row in told] == [1, 2, 3]
    assert set(told[0]) == set(fitted.history)
    assert [row["precision"] for row in told] == fitted.history["precision"].tolist()


@pytest.mark.parametrize(
    ("answer", "epochs"), [(True, 2), (np.True_, 2), (1, 4), ("stop", 4), (None, 4)]
)
def test_a_function_that_returns_true_ends_the_fit(answer, epochs, key, data):
    stop = lambda row: answer if row["epoch"] == 2 else None
    fitted = fit(key, bowl(), data, num_epochs=4, callbacks=[stop])
    assert len(fitted.history["loss"]) == epochs
    whole = fit(key, bowl(), data, num_epochs=4)
    assert fitted.history["loss"][1] == whole.history["loss"][1]


@pytest.mark.parametrize(
    ("callbacks", "said"),
    [
        ([3], "`callbacks`"),
        (["tensorboard"], "`callbacks`"),
        ([Monitor], "`callbacks`"),
        ([Monitor(lambda energy: {"loss": energy.precision})], "gives loss"),
        ([Monitor(precision), Monitor(precision)], "gives precision"),
    ],
)
def test_wrong_callbacks_are_refused(callbacks, said, key, data, unchecked):
    with pytest.raises(ValueError, match=said):
        fit(key, bowl(), data, callbacks=callbacks)


def test_a_fit_that_was_ended_is_resumed_to_its_end(key, data, tmp_path):
    path = tmp_path / "fit.npz"
    stop = lambda row: row["epoch"] == 2
    first = fit(key, bowl(), data, num_epochs=4, callbacks=[stop], checkpoint=path)
    assert len(first.history["loss"]) == 2
    again = fit(key, bowl(), data, num_epochs=4, checkpoint=path)
    assert same(again.energy, fit(key, bowl(), data, num_epochs=4).energy)
