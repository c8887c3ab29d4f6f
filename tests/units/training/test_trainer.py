import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
import pytest
from by_hand import batch_of, Bowl, bowl, divergence_of, epochs, fit, Jump, STILL

from equistein.training import AbstractObjective, adam, Trainer


class Rows(AbstractObjective):
    """Tells which rows of the data a batch has."""

    def init(self, key, energy, data):
        return None

    def loss(self, key, energy, state, batch):
        info = {f"row_{i}": row.astype(float) for i, row in enumerate(batch.rows)}
        labels = batch.labels
        told = {} if labels is None else {"label": jnp.mean(labels.astype(float))}
        return jnp.mean(batch.evaluate(energy).energy), state, info | told


def rows_of(info):
    names = sorted(name for name in info if name.startswith("row_"))
    return np.stack([np.asarray(info[name]) for name in names], axis=1).astype(int)


@pytest.mark.slow
def test_the_running_mean_lags_behind_the_weights(key):
    data, weight = jr.normal(key, (8, 2)), jnp.array([0.3, -0.2])
    objective = divergence_of(data)
    for ema, decay in ((0.05, 0.05), (0.9, 0.1)):  # the first is at most 1 / 10
        (_, new), _ = epochs(key, bowl(0.0, weight), data, objective, rate=0.5, ema=ema)
        expected = decay * weight + (1 - decay) * new.energy.slope
        assert np.allclose(new.average.slope, expected)


def test_rows_tell_which_points_a_batch_has(key):
    data = jnp.arange(12.0)[:, None]
    _, infos = epochs(
        key, bowl(0.0, 1.0), data, Rows(), num=2, batch_size=4,
        labels=jnp.arange(12) // 4,
    )  # fmt: skip
    seen = [rows_of(info) for info in infos]
    for rows, info in zip(seen, infos, strict=True):
        assert np.array_equal(np.sort(rows.ravel()), np.arange(12))
        assert np.allclose(info["loss"], rows.mean(axis=1))
        assert np.allclose(info["label"], (rows // 4).mean(axis=1))
    assert not np.array_equal(*seen)  # each epoch has an order of its own


@pytest.mark.slow
def test_epochs_of_more_than_a_pass_see_all_before_any_comes_again(key):
    data = jnp.arange(10.0)[:, None]
    for batches in (1, 7):  # less than a pass over the data, and more
        fitted = fit(
            key, bowl(0.0, 1.0), data, Rows(), num_epochs=2, batch_size=4,
            epoch_batches=batches,
        )  # fmt: skip
        assert len(fitted.history["loss"]) == 2
    trainer = Trainer(Rows(), optax.sgd(0.0), 4, 7, 0.0)
    state = trainer.init(key, bowl(0.0, 1.0), batch_of(data))
    rows = rows_of(trainer.epoch(state, data)[1]).ravel()
    assert len(rows) == 28
    for part in (rows[:10], rows[10:20]):
        assert np.array_equal(np.sort(part), np.arange(10))


def test_an_epoch_is_compiled_once(key):
    traced, after = [], []

    class Counted(Jump):
        def step(self, key, state, log_density):
            traced.append(1)
            return Jump.step(self, key, state, log_density)

    data = jr.normal(key, (16, 2))
    weak = Bowl(jnp.asarray(1.0), jnp.asarray(0.0))  # as a number is before its use
    objective = divergence_of(data, Counted(1.0))
    watch = lambda row: after.append(len(traced))
    fit(key, weak, data, objective, num_epochs=4, callbacks=[watch])
    assert after == after[:1] * 4
    # Another fit with the same parts compiles nothing.
    fit(key, weak, data, objective, num_epochs=4, callbacks=[watch])
    assert after == after[:1] * 8


def test_scaled_updates_are_smaller(key):
    data, weight = jr.normal(key, (8, 2)), jnp.array([0.3, -0.2])
    trainer = Trainer(divergence_of(data, STILL), optax.sgd(0.5), 8, 1, 0.0)
    state = trainer.init(key, bowl(0.0, weight), batch_of(data))
    half = eqx.tree_at(lambda s: s.step_scale, state, state.step_scale / 2)
    moves = [trainer.epoch(s, data)[0].energy.slope - weight for s in (state, half)]
    assert np.allclose(moves[0], 2 * moves[1])


@pytest.mark.slow
def test_an_epoch_tells_whether_it_is_finite(key):
    data = jr.normal(key, (8, 2))
    _, (info,) = epochs(key, bowl(), data, divergence_of(data))
    assert np.all(info["is_finite"])
    _, (info,) = epochs(key, bowl(float("nan")), data, Rows())
    assert not np.any(info["is_finite"])


def step_sizes(optimizer, num):
    """Return the size of each update under a constant gradient, as Adam takes it."""
    weight = jnp.ones(())
    state, sizes = optimizer.init(weight), []
    with jax.numpy_dtype_promotion("standard"):
        update = jax.jit(optimizer.update)
        for _ in range(num):
            change, state = update(jnp.ones(()), state, weight)
            sizes.append(float(-change))
    return np.array(sizes)


def test_the_learning_rate_warms_up():
    sizes = step_sizes(adam(0.01, 10_000, warm_up=4), 7)
    rise = np.array([0.2, 0.4, 0.6, 0.8, 1, 1, 1])
    assert np.allclose(sizes, 0.01 * rise, rtol=1e-4)
    assert np.allclose(step_sizes(adam(0.01, 10_000), 7), 0.01, rtol=1e-4)


def test_the_learning_rate_falls_along_a_cosine():
    exact = 0.5 * (1 + np.cos(np.pi * np.arange(11) / 10))
    sizes = step_sizes(adam(0.01, 10), 11)
    assert np.allclose(sizes, 0.01 * (0.99 * exact + 0.01), rtol=1e-4)


def test_the_learning_rate_may_fall_in_steps():
    sizes = step_sizes(adam(0.01, 10, factors={2: 0.5, 6: 0.1}), 8)
    factors = np.array([1, 1, 0.5, 0.5, 0.5, 0.5, 0.1, 0.1])
    assert np.allclose(sizes, 0.01 * factors, rtol=1e-4)
    assert np.allclose(step_sizes(adam(0.01, 3, factors={}), 8), 0.01, rtol=1e-4)


def test_the_gradient_is_clipped():
    optimizer = adam(0.01, 5, gradient_clip=2.0)
    weights = jnp.zeros(2)
    with jax.numpy_dtype_promotion("standard"):
        state = optimizer.init(weights)
        _, after = optimizer.update(jnp.array([30.0, 40.0]), state, weights)
    moments = after[1][0]  # the mean of gradients has taken a tenth of the first
    assert np.allclose(moments.mu, 0.1 * 2.0 * jnp.array([0.6, 0.8]))


def test_the_same_arguments_give_the_same_object():
    assert adam(0.01, 10, warm_up=2) is adam(0.01, 10, warm_up=2)
    assert adam(0.01, 10) is not adam(0.01, 20)
