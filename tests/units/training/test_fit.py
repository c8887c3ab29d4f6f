import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from by_hand import bowl, divergence_of, fit, generator_of, two_clusters

import equistein as es
from equistein.energies import KnownEnergy
from equistein.groups import Cyclic, Trivial
from equistein.models import energy_for
from equistein.training import (
    AbstractObjective,
    adam,
    CrossEntropy,
    SquaredError,
)


def test_a_fit_gives_an_energy_a_history_and_samples(key, capsys):
    group, told = Cyclic(4), []
    data = jr.normal(key, (20, 2))
    energy = energy_for(key, group, data, widths=(4,))
    fitted = fit(
        key, energy, data, num_epochs=3, generator=generator_of(data),
        callbacks=[told.append],
    )  # fmt: skip
    assert np.array_equal(fitted.history["epoch"], [1, 2, 3])
    for name, values in fitted.history.items():
        assert np.all(np.isfinite(values))
        assert np.array_equal(values, [row[name] for row in told])
    assert set(fitted.history) == {
        "epoch", "loss", "step_scale", "positive_energy", "negative_energy",
        "largest_energy", "score_norm", "displacement", "sampler_steps",
    }  # fmt: skip
    assert np.array_equal(fitted.history["step_scale"], np.ones(3))
    assert fitted.events == []
    assert fitted.energy(data[0]) != energy(data[0])
    assert fitted.group is group or fitted.group == group
    es.check_invariance(fitted.energy.log_density, group, data, tolerance=1e-9)
    samples = fitted.sample(key, 7)  # more than are drawn at once
    assert samples.shape == (7, 2)
    assert np.all(np.isfinite(samples))
    assert len(np.unique(samples, axis=0)) == 7
    assert np.array_equal(fitted.sample(key, 7), samples)
    assert not capsys.readouterr().err
    fitted.sample(key, 7, progress=True)
    assert "2 of 2" in capsys.readouterr().err


def test_an_epoch_is_a_pass_over_the_data_in_whole_batches(key):
    data, labels = jr.normal(key, (20, 2)), jnp.zeros(20)
    fitted = fit(
        key, bowl(), data, SquaredError(), labels=labels, num_epochs=2, batch_size=6
    )
    assert np.array_equal(fitted.history["num_labels"], [18.0, 18.0])


def test_an_epoch_s_numbers_come_from_its_batches(key):
    class Reporting(AbstractObjective):
        def init(self, key, energy, data):
            return None

        def loss(self, key, energy, state, batch):
            rows = batch.rows.astype(float)
            info = {
                "largest_row": jnp.max(rows), "num_rows": jnp.asarray(float(len(rows))),
                "mean_row": jnp.mean(rows), "never": jnp.asarray(jnp.nan),
                "some": jnp.where(jnp.min(rows) == 0, jnp.nan, 2.0),
            }  # fmt: skip
            return jnp.mean(batch.evaluate(energy).energy), state, info

    data = jr.normal(key, (16, 2))
    history = fit(key, bowl(), data, Reporting(), batch_size=4).history
    numbers = {name: values[0] for name, values in history.items()}
    assert (numbers["largest_row"], numbers["num_rows"]) == (15, 16)
    assert (numbers["mean_row"], numbers["some"]) == (7.5, 2)
    assert np.isnan(numbers["never"])


def test_an_energy_without_its_symmetry_is_refused(key):
    tilted = KnownEnergy(lambda point: -jnp.sum(point**2) - point[0], Cyclic(4))
    with pytest.raises(es.InvarianceError):
        fit(key, tilted, jr.normal(key, (20, 2)))


@pytest.mark.parametrize(
    "change",
    [
        lambda x: x[:1],
        lambda x: x[:3],
        lambda x: x.at[3, 0].set(jnp.nan),
        lambda x: x.at[3, 0].set(-jnp.inf),
        lambda x: x[:, :0],
        lambda x: x[:, 0],
        lambda x: x.astype(int),
        lambda x: None,
    ],
)
def test_wrong_data_are_refused(change, key, unchecked):
    data = jr.normal(key, (10, 2))
    with pytest.raises(ValueError, match="data"):
        fit(key, bowl(), change(data), divergence_of(data))


@pytest.mark.parametrize(
    ("option", "value"),
    [("epoch_batches", 0), ("ema", 1.0), ("ema", 1.5), ("ema", -0.1)],
)
def test_wrong_numbers_are_named(option, value, key, unchecked):
    with pytest.raises(ValueError, match=option):
        fit(key, bowl(), jr.normal(key, (10, 2)), **{option: value})


@pytest.mark.parametrize("other", [jr.key(0, impl="rbg"), jr.split(jr.key(0), 3)])
def test_several_keys_and_those_of_another_kind_are_refused(other, unchecked):
    with pytest.raises(ValueError, match="`key`"):
        fit(other, bowl(), jnp.ones((10, 2)))


@pytest.mark.parametrize("objective", [None, "cd", CrossEntropy])
def test_what_is_no_objective_is_refused(objective, key, unchecked):
    data = jr.normal(key, (10, 2))
    with pytest.raises(ValueError, match="`objective`"):
        es.fit(key, bowl(), data, objective, num_epochs=1, batch_size=8)


def test_known_energies_are_learned(key):
    data = jr.normal(key, (16, 1))
    energies = 0.5 * 3.0 * data[:, 0] ** 2 + 0.5 * data[:, 0]
    some = np.where(np.arange(16) % 3 == 0, np.nan, energies)
    fitted = fit(
        key, bowl(), data, SquaredError(), labels=some, num_epochs=200,
        optimizer=adam(0.05, 400), ema=0.5,
    )  # fmt: skip
    assert np.isclose(fitted.energy.precision, 3.0, atol=0.02)
    assert np.isclose(fitted.energy.slope, 0.5, atol=0.02)
    losses = fitted.history["squared_error"]
    assert losses[-1] < 1e-3 * losses[0]
    assert not {"accuracy", "negative_energy"} & set(fitted.history)


def test_labels_alone_train_a_classifier(key):
    data, classes = two_clusters(key)
    energy = energy_for(key, Trivial(), data, num_classes=2, widths=(8,))
    options = {"num_epochs": 5, "epoch_batches": 40, "optimizer": adam(1e-2, 200)}
    fitted = fit(key, energy, data, CrossEntropy(), labels=classes, **options)
    assert fitted.history["accuracy"][-1] > 0.9
    assert "negative_energy" not in fitted.history
    # The broken twin: the classes swapped.
    broken = fit(key, energy, data, CrossEntropy(), labels=1 - classes, **options)
    logits = jax.vmap(broken.energy.logits)(data)
    assert np.mean(np.argmax(logits, axis=1) == classes) < 0.2
