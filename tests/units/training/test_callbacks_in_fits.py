"""Monitors, early stopping and functions that are told of each epoch."""

import sys

import jax.random as jr
import numpy as np
import pytest
from by_hand import bowl, fit

from equistein.training import (
    AbstractCallback,
    EarlyStopping,
    Monitor,
    OnEpoch,
    TensorBoard,
)
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
    callbacks = [Monitor(precision), OnEpoch(told.append)]
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
        ([OnEpoch], "`callbacks`"),
        ([EarlyStopping("gap", 1)], "`column`"),
        ([Monitor(lambda energy: {"loss": energy.precision})], "gives loss"),
        ([Monitor(precision), Monitor(precision)], "gives precision"),
    ],
)
def test_wrong_callbacks_are_refused(callbacks, said, key, data, unchecked):
    with pytest.raises(ValueError, match=said):
        fit(key, bowl(), data, callbacks=callbacks)


@pytest.mark.slow
def test_tensorboard_reads_the_numbers(key, data, tmp_path):
    pytest.importorskip("tensorboardX")
    fit(key, bowl(), data, num_epochs=3, callbacks=[TensorBoard(tmp_path)])
    (file,) = tmp_path.glob("events*")
    assert b"positive_energy" in file.read_bytes()


def test_without_tensorboard_the_command_that_installs_it_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    with pytest.raises(ImportError, match=r"equistein\[tensorboard\]"):
        TensorBoard("anywhere")


class Given(AbstractCallback):
    """Gives numbers of its own, one an epoch."""

    def __init__(self, values):
        self.values = values
        self.last = []

    def columns(self, energy):
        return ["given"]

    def __call__(self, epoch, energy, row, *, last):
        self.last.append(last)
        return {"given": self.values[epoch - 1]}


@pytest.mark.parametrize(
    ("values", "patience", "maximize", "epochs"),
    [
        ([3.0, 2.0, 2.5, 2.6, 1.0, 0.0], 2, False, 4),
        ([3.0, 2.0, 2.5, 1.9, 1.0, 0.0], 2, False, 6),
        ([3.0, 2.0, 2.5, 2.6, 9.0, 1.0], 2, True, 3),
        ([3.0, np.nan, np.nan, 2.0, np.nan, 1.0], 3, False, 6),
        ([np.nan] * 6, 1, False, 6),
    ],
)
def test_a_fit_that_gets_no_better_ends(values, patience, maximize, epochs, key, data):
    given = Given(values)
    stopping = EarlyStopping("given", patience, maximize=maximize)
    fitted = fit(key, bowl(), data, num_epochs=6, callbacks=[given, stopping])
    assert np.array_equal(fitted.history["epoch"], np.arange(1, epochs + 1))
    assert given.last == [False] * min(epochs, 5) + [True] * (epochs - 5)


def test_a_fit_that_ended_early_is_resumed_to_its_end(key, data, tmp_path):
    path = tmp_path / "fit.eqx"
    callbacks = [Given([1.0, 2.0, 3.0, 4.0]), EarlyStopping("given", 1)]
    options = {"num_epochs": 4, "callbacks": callbacks, "checkpoint": path}
    first = fit(key, bowl(), data, **options)
    before = path.read_bytes()
    again = fit(key, bowl(), data, **options)
    assert len(again.history["loss"]) == len(first.history["loss"]) == 2
    assert same(again.energy, first.energy)
    assert path.read_bytes() == before
