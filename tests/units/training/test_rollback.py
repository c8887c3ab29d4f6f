import warnings

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from by_hand import generator_of, persistent

from equistein.energies import AbstractEnergy
from equistein.groups import Trivial
from equistein.training import (
    adam,
    ContrastiveDivergence,
    DivergenceError,
)
from short_fits import fit, same, stop_after


class Steep(AbstractEnergy):
    r"""$E(x) = e^w |x|^2$: a large step of w leaves the numbers."""

    weight: jax.Array

    def __call__(self, point):
        return jnp.sum(point**2) * jnp.exp(self.weight)

    def group(self, shape):
        return Trivial()


def narrow_data(key):
    # Narrower than the particles' box: the first steps make the bowl steeper.
    return 0.3 * jr.normal(key, (20, 2))


def try_fit(key, factor=4_000.0, *, batch_size=5, rate=0.01, rollback=(), **options):
    """Return a fit of two good epochs, then larger steps, and what it warned of."""
    data = narrow_data(key)
    batches = 20 // batch_size
    objective = ContrastiveDivergence(
        persistent(data, num_particles=6, num_steps=2, reset_probability=0.05)
    )
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        fitted = fit(
            key, Steep(jnp.zeros(())), data, objective, num_epochs=5,
            batch_size=batch_size, generator=generator_of(data), rollback=rollback,
            optimizer=adam(rate, 100, factors={2 * batches: factor}), **options,
        )  # fmt: skip
    return fitted, [str(one.message) for one in said]


def failed(key, *arguments, **options):
    """Return the error of a fit that gives up."""
    with pytest.raises(DivergenceError) as caught:
        try_fit(key, *arguments, **options)
    return caught.value


@pytest.mark.slow
def test_a_diverging_fit_goes_back_and_recovers(key):
    fitted, said = try_fit(key)
    num = len(fitted.events)
    assert 1 <= num <= 3
    for index, event in enumerate(fitted.events, start=1):
        assert event["event"] == "roll-back"
        assert event["epoch"] == 3
        assert event["back_to_epoch"] < 3
        assert event["step_scale"] == 0.5**index
        assert event["text"]
    assert len(said) == num
    assert all(text.startswith("The fit diverged in epoch 3") for text in said)
    scale = fitted.history["step_scale"]
    assert np.all(scale[2:] == 0.5**num)
    assert scale[0] == 1.0
    for values in fitted.history.values():
        assert len(values) == 5
        assert np.all(np.isfinite(values))
    assert np.max(fitted.history["largest_energy"]) <= 1e6
    assert np.isfinite(fitted.energy.weight)
    # The generator takes the smaller steps too.
    data = narrow_data(key)
    other = generator_of(data).scale_steps(jnp.asarray(0.5**num))
    assert np.array_equal(fitted.sample(key, 3), other.sample(key, fitted.energy, 3))
    whole = generator_of(data).sample(key, fitted.energy, 3)
    assert not np.array_equal(fitted.sample(key, 3), whole)


def test_a_fit_that_does_not_diverge_warns_of_nothing(key):
    fitted, said = try_fit(key, 1.0)
    assert fitted.events == []
    assert said == []
    assert np.array_equal(fitted.history["step_scale"], np.ones(5))


@pytest.mark.parametrize(
    ("factor", "limit", "reason"),
    # With 4 000 the first energy is infinite, by some versions of XLA.
    [(2_000.0, 1e6, "`energy_limit`"), (1e9, 1e300, "not finite")],
)
def test_a_fit_that_diverges_too_often_gives_up_with_its_last_good_state(
    factor, limit, reason, key, tmp_path
):
    path = tmp_path / "fit.npz"
    rollback = {"max_rollbacks": 1, "energy_limit": limit}
    options = {"rollback": rollback, "checkpoint": path}
    error = failed(key, factor, **options)
    assert isinstance(error, FloatingPointError)
    assert "diverged 2 times, at last in epoch 3" in str(error)
    assert "`max_rollbacks` allows 1" in str(error)
    fitted = error.fitted
    assert len(fitted.events) == 2
    assert all(reason in event["text"] for event in fitted.events)
    assert "gives up" in fitted.events[-1]["text"]
    energies = jax.vmap(fitted.energy)(narrow_data(key))
    assert np.all(np.abs(energies) < 100)
    assert len(fitted.history["loss"]) == 2  # what was not done is not made up
    assert np.all(np.isfinite(fitted.history["loss"]))
    assert np.all(np.isfinite(fitted.sample(key, 3)))
    # What is in the checkpoint is the same, and it is final.
    before = path.read_bytes()
    again = failed(key, factor, **options)
    assert path.read_bytes() == before
    assert str(again) == str(error)
    assert same(again.fitted.energy, fitted.energy)
    assert again.fitted.events == fitted.events


def test_a_last_update_of_an_epoch_that_diverges_is_undone_too(key):
    # With one batch an epoch nothing in the epoch sees what its update did.
    fitted, _ = try_fit(key, 1.0, batch_size=20, rate=20.0)
    assert 1 <= len(fitted.events) <= 3
    assert np.all(np.isfinite(fitted.history["loss"]))


def test_each_attempt_has_its_own_randomness(key):
    assert len(failed(key, 1e9).fitted.events) == 4
    alone = failed(key, rollback={"max_rollbacks": 0})
    assert len(alone.fitted.events) == 1
    fitted, _ = try_fit(key)
    # The first epochs are the same numbers; those after a roll-back are others.
    calm, _ = try_fit(key, 1.0)
    one, other = fitted.history, calm.history
    assert one["loss"][0] == other["loss"][0]
    assert one["negative_energy"][2] != other["negative_energy"][2]


@pytest.mark.parametrize("epoch", [1, 4])
def test_a_fit_with_rollbacks_resumes_to_the_same_bytes(epoch, key, tmp_path):
    whole, parts = tmp_path / "whole.npz", tmp_path / "parts.npz"
    straight, _ = try_fit(key, checkpoint=whole)
    assert straight.events
    with pytest.raises(KeyboardInterrupt):
        try_fit(key, checkpoint=parts, callbacks=[stop_after(epoch)])
    resumed, _ = try_fit(key, checkpoint=parts)
    assert parts.read_bytes() == whole.read_bytes()
    assert resumed.events == straight.events
    assert same(resumed.history, straight.history)


def test_a_fit_stopped_right_after_a_rollback_resumes_to_the_same_bytes(
    key, tmp_path, monkeypatch
):
    whole, parts = tmp_path / "whole.npz", tmp_path / "parts.npz"
    straight, _ = try_fit(key, checkpoint=whole)

    def stopped(text, *arguments, **options):
        raise KeyboardInterrupt(text)

    # The warning comes once the roll-back is on disk.
    for _ in straight.events:
        with monkeypatch.context() as patch:
            patch.setattr("equistein.training._loop.warnings.warn", stopped)
            with pytest.raises(KeyboardInterrupt, match="The fit diverged"):
                try_fit(key, checkpoint=parts)
    try_fit(key, checkpoint=parts)
    assert parts.read_bytes() == whole.read_bytes()
