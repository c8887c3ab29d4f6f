import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
import pytest

import equistein as es
from equistein.energies import AbstractEnergy, energy_for
from equistein.groups import Cyclic, PointCloud, Trivial
from equistein.kernels import RBF
from equistein.training import (
    Box,
    CheckpointError,
    fit,
    FitConfig,
    Fitted,
    Lengths,
    load_fitted,
    save_fitted,
    Trainer,
)

TINY = FitConfig(
    num_epochs=3, batch_size=8, num_particles=6, num_steps=2, sample_steps=4,
    sample_at_once=5, bandwidth=0.5,
)  # fmt: skip


def problem(key, group=Trivial(), shape=(2,), num=20):  # noqa: B008
    data_key, energy_key = jr.split(key)
    data = jax.vmap(group.project)(jr.normal(data_key, (num, *shape)))
    return energy_for(energy_key, group, data, widths=(4,)), data


def same(first, second):
    return jax.tree.all(jax.tree.map(np.array_equal, first, second))


# ------------------------------------------------------------ a fit


def test_a_fit_gives_an_energy_a_history_and_samples(key):
    group = Cyclic(4)
    energy, data = problem(key, group)
    told = []
    fitted = fit(key, energy, data, TINY, on_epoch=told.append)
    assert np.array_equal(fitted.history["epoch"], [1, 2, 3])
    for name, values in fitted.history.items():
        assert np.all(np.isfinite(values))
        assert np.array_equal(values, [row[name] for row in told])
    assert fitted.particles.shape == (6, 2)
    assert fitted.energy(data[0]) != energy(data[0])
    es.check_invariance(fitted.energy.log_density, group, data, tolerance=1e-9)
    samples = fitted.sample(key, 7)  # more than are drawn at once
    assert samples.shape == (7, 2)
    assert np.all(np.isfinite(samples))
    assert len(np.unique(samples, axis=0)) == 7
    assert np.array_equal(fitted.sample(key, 7), samples)


def test_a_fit_repeats_itself_and_goes_on_from_a_checkpoint(key, tmp_path):
    energy, data = problem(key)
    straight = fit(key, energy, data, TINY)
    path = tmp_path / "deep" / "fit.eqx"

    def stop_after_the_second(row):
        if row["epoch"] == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(key, energy, data, TINY, checkpoint=path, on_epoch=stop_after_the_second)
    resumed = fit(key, energy, data, TINY, checkpoint=path)
    assert same(eqx.filter(resumed.energy, eqx.is_array),
                eqx.filter(straight.energy, eqx.is_array))  # fmt: skip
    assert np.array_equal(resumed.particles, straight.particles)
    assert same(resumed.history, straight.history)
    assert [file.name for file in path.parent.iterdir()] == ["fit.eqx"]


def test_another_fit_s_checkpoint_is_refused(key, tmp_path):
    energy, data = problem(key)
    path = tmp_path / "fit.eqx"
    one = FitConfig(**{**vars(TINY), "num_epochs": 1})
    fit(key, energy, data, one, checkpoint=path)
    for arguments, words in (
        ((key, energy, data, TINY), "settings"),
        ((jr.key(99), energy, data, one), "key"),
        ((key, energy, data[:15], one), "data"),
    ):
        with pytest.raises(CheckpointError, match=f"other settings.*{words}"):
            fit(*arguments, checkpoint=path)


class Exploding(AbstractEnergy):
    """An energy whose gradient overflows once it is trained at all."""

    weight: jax.Array

    def __call__(self, point):
        return jnp.sum(point**2) * jnp.exp(self.weight)

    def group(self, shape):
        return Trivial()

    def kernel(self, shape, bandwidth):
        return RBF(bandwidth)


def test_a_fit_that_leaves_the_numbers_ends_with_its_last_epoch_kept(key, tmp_path):
    path = tmp_path / "fit.eqx"
    config = FitConfig(**{**vars(TINY), "learning_rate": 1e6, "num_epochs": 20})
    data = jr.normal(key, (20, 2))
    with (
        pytest.warns(RuntimeWarning, match="The fit diverged"),
        pytest.raises(FloatingPointError, match="diverged 4 times, at last in epoch"),
    ):
        fit(key, Exploding(jnp.zeros(())), data, config, checkpoint=path)
    assert path.stat().st_size > 0


def test_a_fit_of_bad_data_is_refused(key, unchecked):
    energy, data = problem(key)
    for wrong, words in (
        (data[:1], "at least two"),
        (data.at[3, 0].set(jnp.nan), "`data` must be finite.* index 3"),
        (data.astype(int), "`data` must be floating point"),
        (None, "`data` are missing"),
        (data[:, 0], "`data` must have shape"),
    ):
        with pytest.raises(ValueError, match=words):
            fit(key, energy, wrong, TINY)


def test_an_energy_without_its_symmetry_is_refused(key):
    class Tilted(AbstractEnergy):
        def __call__(self, point):
            return jnp.sum(point**2) + point[0]

        def group(self, shape):
            return Cyclic(4)

        def kernel(self, shape, bandwidth):
            return RBF(bandwidth)

    with pytest.raises(es.InvarianceError):
        fit(key, Tilted(), jr.normal(key, (20, 2)), TINY)


def test_a_wrong_number_of_samples_is_refused(key, unchecked):
    energy, data = problem(key)
    start = Box(data, Trivial())
    lengths = Lengths(TINY, start.reach)
    fitted = Fitted(energy, data, {}, [], start, RBF(1.0), TINY, lengths)
    for num in (0, -1, 2.0, True):
        with pytest.raises(ValueError, match="`num`, an integer >= 1"):
            fitted.sample(key, num)


def test_a_stored_fit_draws_the_same_samples(key, tmp_path):
    energy, data = problem(key)
    start, config, kernel = Box(data, Trivial()), TINY, energy.kernel((2,), 0.5)
    lengths = Lengths(config, start.reach)
    fitted = Fitted(energy, data[:6], {}, [], start, kernel, config, lengths)
    save_fitted(tmp_path / "model.eqx", fitted, {"name": "mine"})
    blank, other = problem(jr.key(7))
    again = load_fitted(tmp_path / "model.eqx", blank, other, config, {"name": "mine"})
    assert np.array_equal(again.sample(key, 4), fitted.sample(key, 4))


# ------------------------------------------------------------ parts of a step


class Slope(AbstractEnergy):
    r"""$E(x) = w \cdot x$, whose gradient in w is x."""

    weight: jax.Array

    def __call__(self, point):
        return jnp.sum(self.weight * point)

    def group(self, shape):
        return Trivial()

    def kernel(self, shape, bandwidth):
        return RBF(bandwidth)


def one_batch(key, data, weight, rate=0.5, **options):
    options = {
        "num_epochs": 1, "batch_size": len(data), "num_particles": 5, "num_steps": 1,
        "reset_probability": 0.0, "regularization": 0.0, "ema": 0.0,
        "langevin": 1e-3, "stein_step": 1e-3, "score_clip": 10.0, "bandwidth": 1.0,
    } | options  # fmt: skip
    config = FitConfig(**options)
    start = Box(data, Trivial())
    trainer = Trainer(
        config, Lengths(config, start.reach), RBF(1.0), optax.sgd(rate), start
    )
    state = trainer.init(key, Slope(weight))
    new, infos = trainer.epoch(state, data)
    return state, new, infos


def test_the_weights_follow_the_means_of_data_and_particles(key):
    data, weight = jr.normal(key, (8, 2)), jnp.array([0.3, -0.2])
    _, new, infos = one_batch(key, data, weight)
    mean = np.mean(data, axis=0) - np.mean(new.particles, axis=0)
    assert np.allclose(new.energy.weight, weight - 0.5 * mean)
    above = np.mean(data, axis=0) @ weight
    below = np.mean(new.particles, axis=0) @ weight
    assert np.allclose(infos.positive_energy, above)
    assert np.allclose(infos.negative_energy, below)
    assert np.allclose(infos.loss, above - below)
    assert np.allclose(infos.score_norm, np.linalg.norm(weight))
    assert new.epoch == 1


def test_regularization_adds_the_mean_squares_of_the_energies(key):
    data, weight = jr.normal(key, (8, 2)), jnp.array([0.3, -0.2])
    _, new, infos = one_batch(key, data, weight, regularization=0.1)
    above, below = data @ weight, new.particles @ weight
    square = np.mean(above**2) + np.mean(below**2)
    loss = np.mean(above) - np.mean(below) + 0.1 * square
    assert np.allclose(infos.loss, loss)


def test_particles_persist_unless_they_are_reset(key):
    data, weight = jr.normal(key, (8, 2)), jnp.zeros(2)
    still = {"langevin": 0.0, "stein_step": 1e-12}
    state, new, infos = one_batch(key, data, weight, **still)
    assert np.allclose(new.particles, state.particles, atol=1e-9)
    assert np.allclose(infos.displacement, 0, atol=1e-9)
    state, new, _ = one_batch(key, data, weight, reset_probability=1.0, **still)
    assert np.min(np.abs(new.particles - state.particles)) > 1e-6


def test_data_may_repel_the_particles(key):
    data, weight = jnp.zeros((8, 2)).at[0].set(1.0), jnp.zeros(2)
    moves = [
        one_batch(key, data, weight, repel=repel, langevin=0.0, stein_step=0.1)[1]
        for repel in (True, False)
    ]
    assert np.max(np.abs(moves[0].particles - moves[1].particles)) > 1e-4


def test_the_running_mean_lags_behind_the_weights(key):
    data, weight = jr.normal(key, (8, 2)), jnp.array([0.3, -0.2])
    _, new, _ = one_batch(key, data, weight, ema=0.05)
    # The first update's decay is at most 1 / 10.
    expected = 0.05 * weight + 0.95 * new.energy.weight
    assert np.allclose(new.average.weight, expected)
    _, new, _ = one_batch(key, data, weight, ema=0.9)
    expected = 0.1 * weight + 0.9 * new.energy.weight
    assert np.allclose(new.average.weight, expected)


def test_every_point_is_seen_once_an_epoch(key):
    data = jnp.arange(12.0)[:, None]
    _, _, infos = one_batch(key, data, jnp.ones(1), rate=0.0, batch_size=4)
    assert infos.positive_energy.shape == (3,)
    assert np.isclose(np.sum(infos.positive_energy), np.mean(data) * 3)


def test_box_holds_the_data(key):
    data = 5 + jr.normal(key, (50, 2))
    box = Box(data, Trivial())
    assert np.allclose(box.center, np.mean(data, axis=0))
    points = box.sample(key, 2_000)
    assert np.all(np.abs(points - box.center[None]) <= box.reach)
    assert np.max(np.abs(points - box.center[None])) > 0.95 * box.reach
    around_the_origin = Box(data, Cyclic(4))
    assert np.array_equal(around_the_origin.center, [0.0, 0.0])
    assert np.isclose(around_the_origin.reach, np.max(np.abs(data)))
    clouds = Box(data.reshape(25, 2, 2), PointCloud((0, 0), 2)).sample(key, 10)
    assert np.allclose(np.mean(clouds, axis=1), 0, atol=1e-12)
