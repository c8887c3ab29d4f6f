import dataclasses
import warnings

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from equistein.energies import AbstractEnergy
from equistein.groups import Trivial
from equistein.kernels import RBF
from equistein.training import DivergenceError, fit, FitConfig

# Two good epochs; then steps of 40, of which a quarter stays below the limit.
CONFIG = FitConfig(
    num_epochs=5, batch_size=5, num_particles=6, num_steps=2, bandwidth=0.5,
    sample_steps=4, learning_rate=0.01, learning_rate_epochs=(2,),
    learning_rate_factors=(4_000.0,),
)  # fmt: skip


class Steep(AbstractEnergy):
    r"""$E(x) = e^w |x|^2$: a large step of w leaves the numbers."""

    weight: jax.Array

    def __call__(self, point):
        return jnp.sum(point**2) * jnp.exp(self.weight)

    def group(self, shape):
        return Trivial()

    def kernel(self, shape, bandwidth):
        return RBF(bandwidth)


def narrow_data(key):
    # Narrower than the particles' box: the first steps make the bowl steeper.
    return 0.3 * jr.normal(key, (20, 2))


def try_fit(key, config, **options):
    """Return the fit and what it warned of."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        energy, data = Steep(jnp.zeros(())), narrow_data(key)
        fitted = fit(key, energy, data, config, **options)
    return fitted, [str(one.message) for one in said]


def failed(key, config, **options):
    """Return the error of a fit that gives up."""
    with pytest.raises(DivergenceError) as caught:
        try_fit(key, config, **options)
    return caught.value


def weights(fitted):
    return jax.tree.leaves(eqx.filter(fitted.energy, eqx.is_array))


def test_a_diverging_fit_goes_back_and_recovers(key):
    fitted, said = try_fit(key, CONFIG)
    num = len(fitted.events)
    assert 1 <= num <= 3
    for index, event in enumerate(fitted.events, start=1):
        assert event["event"] == "roll-back"
        assert event["epoch"] == 3
        assert event["back_to_epoch"] < 3
        assert event["scale"] == 0.5**index
        assert event["text"]
    assert len(said) == num
    assert all(text.startswith("The fit diverged in epoch 3") for text in said)
    scale = fitted.history["scale"]
    assert np.all(scale[2:] == 0.5**num)
    assert scale[0] == 1.0
    for values in fitted.history.values():
        assert np.all(np.isfinite(values))
    assert np.max(fitted.history["largest_energy"]) <= CONFIG.energy_limit
    assert np.all(np.isfinite(weights(fitted)))
    assert np.all(np.isfinite(fitted.particles))


def test_a_fit_that_does_not_diverge_warns_of_nothing(key):
    calm = dataclasses.replace(CONFIG, learning_rate_factors=(1.0,))
    fitted, said = try_fit(key, calm)
    assert fitted.events == []
    assert said == []
    assert np.array_equal(fitted.history["scale"], np.ones(5))


@pytest.mark.parametrize(
    ("factor", "limit", "reason"),
    [(4_000.0, 1e6, "beyond `energy_limit`"), (1e9, 1e300, "not finite")],
)
def test_a_fit_that_diverges_too_often_gives_up_with_its_last_good_state(
    factor, limit, reason, key, tmp_path
):
    config = dataclasses.replace(
        CONFIG, max_rollbacks=1, learning_rate_factors=(factor,), energy_limit=limit
    )
    path = tmp_path / "fit.eqx"
    error = failed(key, config, checkpoint=path)
    assert isinstance(error, FloatingPointError)
    assert "diverged 2 times, at last in epoch 3" in str(error)
    assert "`max_rollbacks` allows 1" in str(error)
    fitted = error.fitted
    assert len(fitted.events) == 2
    assert all(reason in event["text"] for event in fitted.events)
    assert "gives up" in fitted.events[-1]["text"]
    assert np.all(np.isfinite(weights(fitted)))
    assert np.all(np.isfinite(fitted.particles))
    energies = jax.vmap(fitted.energy)(narrow_data(key))
    assert np.all(np.abs(energies) < 100)
    losses = fitted.history["loss"]
    assert np.all(np.isfinite(losses[:2]))
    assert np.all(np.isnan(losses[2:]))  # what was not done is not made up
    # What is in the checkpoint is the same, and it is final.
    before = path.read_bytes()
    again = failed(key, config, checkpoint=path)
    assert path.read_bytes() == before
    assert str(again) == str(error)
    assert np.array_equal(weights(again.fitted), weights(fitted))
    assert str(again.fitted.events) == str(fitted.events)  # NaN is not itself


def test_without_rollbacks_the_first_divergence_ends_the_fit(key):
    error = failed(key, dataclasses.replace(CONFIG, max_rollbacks=0))
    assert len(error.fitted.events) == 1


def test_a_last_update_of_an_epoch_that_diverges_is_undone_too(key):
    # With one batch an epoch nothing in the epoch sees what its update did.
    config = dataclasses.replace(
        CONFIG, batch_size=20, learning_rate=20.0, learning_rate_epochs=(),
        learning_rate_factors=(),
    )  # fmt: skip
    fitted, _ = try_fit(key, config)
    assert 1 <= len(fitted.events) <= 3
    assert np.all(np.isfinite(fitted.history["loss"]))


def test_each_attempt_has_its_own_randomness(key):
    error = failed(key, dataclasses.replace(CONFIG, learning_rate_factors=(1e9,)))
    fitted, _ = try_fit(key, CONFIG)
    assert len(error.fitted.events) == 4
    # The first epochs are the same numbers; those after a roll-back are others.
    calm, _ = try_fit(key, dataclasses.replace(CONFIG, learning_rate_factors=(1.0,)))
    assert fitted.history["loss"][0] == calm.history["loss"][0]
    assert fitted.history["negative_energy"][2] != calm.history["negative_energy"][2]


def stop_after(epoch):
    def on_epoch(row):
        if row["epoch"] == epoch:
            raise KeyboardInterrupt

    return on_epoch


@pytest.mark.parametrize("epoch", [1, 3, 4])
def test_a_fit_with_rollbacks_resumes_to_the_same_bytes(epoch, key, tmp_path):
    whole, parts = tmp_path / "whole.eqx", tmp_path / "parts.eqx"
    straight, _ = try_fit(key, CONFIG, checkpoint=whole)
    assert straight.events
    with pytest.raises(KeyboardInterrupt):
        try_fit(key, CONFIG, checkpoint=parts, on_epoch=stop_after(epoch))
    resumed, _ = try_fit(key, CONFIG, checkpoint=parts)
    assert parts.read_bytes() == whole.read_bytes()
    assert resumed.events == straight.events
    for name, values in straight.history.items():
        assert np.array_equal(resumed.history[name], values)


def test_a_fit_stopped_right_after_a_rollback_resumes_to_the_same_bytes(key, tmp_path):
    whole, parts = tmp_path / "whole.eqx", tmp_path / "parts.eqx"
    straight, _ = try_fit(key, CONFIG, checkpoint=whole)
    # The warning, made an error, ends the fit once the roll-back is on disk.
    for _ in straight.events:
        with pytest.raises(RuntimeWarning, match="The fit diverged"):
            fit(key, Steep(jnp.zeros(())), narrow_data(key), CONFIG, checkpoint=parts)
    try_fit(key, CONFIG, checkpoint=parts)
    assert parts.read_bytes() == whole.read_bytes()
