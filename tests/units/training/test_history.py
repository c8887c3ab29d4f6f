import jax.numpy as jnp
import numpy as np
import pytest

from equistein.training._history import History, means


def test_an_epoch_s_numbers_come_from_its_batches():
    infos = {
        "loss": jnp.array([1.0, 2.0, 6.0]),
        "accuracy": jnp.array([0.5, jnp.nan, 1.0]),
        "nothing": jnp.full(3, jnp.nan),
        "largest_energy": jnp.array([1.0, 7.0, 3.0]),
        "num_labels": jnp.array([2.0, 0.0, 3.0]),
        "is_finite": jnp.array([True, True, True]),
    }
    found = means(infos)
    assert np.isnan(found.pop("nothing"))
    assert found == {
        "loss": 3.0, "accuracy": 0.75, "largest_energy": 7.0, "num_labels": 5.0,
    }  # fmt: skip


def test_columns_are_of_the_epochs_that_were_done():
    history = History.empty(5, 2, ["loss", "scale"])
    for epoch in range(3):
        history.add_row(epoch, {"loss": float(epoch), "scale": 1.0})
    columns = history.columns()
    assert np.array_equal(columns["epoch"], [1, 2, 3])
    assert np.array_equal(columns["loss"], [0.0, 1.0, 2.0])


def test_epochs_after_a_roll_back_are_forgotten():
    history = History.empty(5, 2, ["loss", "scale"])
    for epoch in range(3):
        history.add_row(epoch, {"loss": float(epoch), "scale": 1.0})
    history.add_event(4, "not finite", float("nan"), 1, 0.5)
    assert np.array_equal(history.columns()["loss"], [0.0])
    (event,) = history.events()
    assert event["event"] == "roll-back"
    assert event["largest_energy"] is None
    assert (event["epoch"], event["back_to_epoch"], event["scale"]) == (4, 1, 0.5)
    assert "an energy or a weight was not finite" in event["text"]


def test_the_last_event_allowed_is_the_end():
    history = History.empty(5, 1, ["loss", "scale"])
    history.add_row(0, {"loss": 1.0, "scale": 1.0})
    for _ in range(2):
        history.add_event(2, "energy limit", 3e7, 0, 0.5)
        history.add_row(0, {"loss": 1.0, "scale": 0.5})
    first, last = history.events()
    assert (first["event"], last["event"]) == ("roll-back", "stop")
    assert "3e+07, beyond `energy_limit`" in first["text"]
    assert "It gives up." in last["text"]
    assert "scale" not in last
    assert len(history.columns()["epoch"]) == 1  # what was done stays known


def test_a_history_is_restored_from_its_arrays():
    history = History.empty(2, 1, ["loss", "scale"])
    history.add_row(0, {"loss": 1.0, "scale": 1.0})
    copy = History(history.arrays)
    history.add_row(1, {"loss": 2.0, "scale": 1.0})
    assert np.array_equal(copy.columns()["loss"], [1.0])
    with pytest.raises(KeyError):
        copy.add_row(1, {"no column": 1.0})
