"""Epochs that take over the buffers of states, as on a GPU, lose and change nothing."""

import jax.random as jr
import numpy as np
import pytest
from by_hand import bowl, divergence_of, generator_of, same
from test_rollback import try_fit

import equistein as es
from equistein.training import AbstractCallback, adam, OnEpoch


class Keeper(AbstractCallback):
    """A callback that keeps each epoch's energy."""

    def __init__(self, kept):
        self.kept = kept

    def __call__(self, epoch, energy, row, *, last):
        self.kept.append(energy)
        return {}


@pytest.fixture
def giving_away(monkeypatch):
    monkeypatch.setattr("equistein.training._loop.gives_away", lambda state: True)


def fitted(energy, **options):
    data = jr.normal(jr.key(0), (20, 2))
    return es.fit(
        jr.key(1), energy, data, divergence_of(data, reset_probability=0.2),
        num_epochs=3, batch_size=8, generator=generator_of(data),
        optimizer=adam(0.01, 100), **options,
    )  # fmt: skip


def test_a_fit_is_the_same_and_goes_on_from_a_checkpoint(request, tmp_path):
    energy, seen = bowl(), []
    whole = fitted(energy)
    request.getfixturevalue("giving_away")

    def stop(row):
        if row["epoch"] == 2:
            raise KeyboardInterrupt

    path = tmp_path / "fit.eqx"
    with pytest.raises(KeyboardInterrupt):
        fitted(energy, callbacks=[OnEpoch(stop)], checkpoint=path)
    again = fitted(energy, callbacks=[OnEpoch(lambda row: None)], checkpoint=path)
    for found in (fitted(energy), again):
        assert same(found.energy, whole.energy)
        assert np.array_equal(found.history["loss"], whole.history["loss"])
    fitted(energy, callbacks=[Keeper(seen)])
    assert len(seen) == 3
    assert all(np.isfinite(each.precision) for each in seen)
    assert np.isfinite(float(energy(jr.normal(jr.key(2), (2,)))))


@pytest.mark.slow
def test_a_fit_that_goes_back_is_the_same(request):
    key = jr.key(0)
    kept, _ = try_fit(key)
    request.getfixturevalue("giving_away")
    given, _ = try_fit(key)
    assert kept.events
    assert given.events == kept.events
    assert same(given.energy, kept.energy)
