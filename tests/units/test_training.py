import hashlib
import json

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
    DENOISING,
    fit,
    FitConfig,
    Fitted,
    Lengths,
    load_checkpoint,
    load_fitted,
    save_checkpoint,
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


# ------------------------------------------------------------ settings


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("num_epochs", 0), ("batch_size", -1), ("num_particles", 0), ("num_steps", 0),
        ("sample_steps", 0), ("sample_at_once", 0), ("score_clip", 0.0),
        ("learning_rate", 0.0), ("learning_rate", float("nan")),
        ("gradient_clip", float("inf")), ("stein_step", -1.0), ("langevin", -1e-9),
        ("regularization", -1.0), ("reset_probability", 1.5), ("sample_tail", -0.1),
        ("ema", 1.0), ("bandwidth", 0.0), ("buffer_size", 0), ("tolerance", 0.0),
        ("reset_to_data", 1.5), ("negatives", "hmc"), ("temperature", 0.0),
        ("temperature", float("inf")), ("contrastive", -1.0), ("supervised", -1.0),
        ("score_matching", float("nan")), ("noise", 0.0), ("data_noise", -0.1),
        ("warm_up", -1), ("max_rollbacks", -1), ("energy_limit", 0.0),
    ],
)  # fmt: skip
def test_a_wrong_setting_is_named(name, value, unchecked):
    with pytest.raises(ValueError, match=f"FitConfig needs.*`{name}`.*got"):
        FitConfig(**{name: value})


def test_particles_that_could_not_move_are_refused():
    with pytest.raises(ValueError, match="no particle moves"):
        FitConfig(stein_step=0.0, langevin=0.0)


@pytest.mark.parametrize("name", ["step", "learning_rate"])
@pytest.mark.parametrize(
    ("epochs", "factors"),
    [
        ((3,), ()), ((), (0.5,)), ((3, 3), (0.5, 0.1)), ((5, 3), (0.5, 0.1)),
        ((0,), (0.5,)), ((3,), (0.0,)), ((3,), (float("inf"),)), ((3,), (-0.5,)),
    ],
)  # fmt: skip
def test_a_wrong_schedule_is_named(name, epochs, factors):
    options = {f"{name}_epochs": epochs, f"{name}_factors": factors}
    with pytest.raises(
        ValueError, match=f"FitConfig needs `{name}_epochs`, a tuple rising"
    ):
        FitConfig(**options)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"negatives": "langevin", "langevin": 0.0}, "no particle moves"),
        ({"negatives": "langevin", "repel": True}, "cannot let data `repel`"),
        ({"num_particles": 8, "buffer_size": 7}, "`buffer_size` of at least"),
        (
            {"contrastive": 0.0, "supervised": 0.0},
            "`contrastive`, `score_matching` or `supervised` above 0",
        ),
    ],
)
def test_settings_that_do_not_go_together_are_refused(options, words):
    with pytest.raises(ValueError, match=words):
        FitConfig(**options)


@pytest.mark.parametrize(
    ("num", "epochs"), [(20_000, 60), (1_280, 60), (1_000, 72), (255, 500), (64, 500)]
)
def test_epochs_left_open_make_five_hundred_batches_or_sixty(num, epochs):
    assert FitConfig().for_data(num).num_epochs == epochs
    assert FitConfig(num_epochs=3).for_data(num).num_epochs == 3


@pytest.mark.parametrize("num", [35, 2_000, 5_000, 100_000, 10_000_000])
def test_denoising_takes_as_many_batches_of_much_data_as_of_few(num):
    config = DENOISING.for_data(num)
    batches = config.num_epochs * config.num_batches(num)
    whole_passes = num // config.batch_size
    assert 9_500 < batches < 9_800 + whole_passes


def test_lengths_left_open_are_set_by_the_data():
    lengths = Lengths(FitConfig(), jnp.asarray(4.0))
    assert np.isclose(lengths.langevin, 0.04**2)
    assert np.isclose(lengths.stein_step, 0.04**2)
    assert np.isclose(lengths.score_clip, 450 / 4)
    assert np.isclose(lengths.noise, 0.08)
    given = FitConfig(langevin=0.5, stein_step=0.0, score_clip=7.0, noise=0.3)
    assert vars(Lengths(given, jnp.asarray(4.0))) == {
        "langevin": 0.5, "stein_step": 0.0, "score_clip": 7.0, "noise": 0.3,
    }  # fmt: skip


# ------------------------------------------------------------ checkpoints


def test_a_checkpoint_gives_its_state_back(tmp_path, key):
    state = {"x": jr.normal(key, (3, 2)), "n": jnp.array(4), "h": np.arange(3.0)}
    blank = jax.tree.map(lambda leaf: leaf * 0, state)
    save_checkpoint(tmp_path / "a" / "c.eqx", state, {"seed": 1, "shape": (3, 2)})
    header = {"seed": 1, "shape": [3, 2]}
    assert same(load_checkpoint(tmp_path / "a" / "c.eqx", blank, header), state)
    assert [file.name for file in (tmp_path / "a").iterdir()] == ["c.eqx"]


def test_a_checkpoint_is_replaced_in_one_piece(tmp_path, monkeypatch):
    path, state = tmp_path / "c.eqx", {"x": jnp.ones(3)}
    save_checkpoint(path, state, {})
    before = path.read_bytes()

    def fails(*arguments):
        raise OSError("disk full")

    monkeypatch.setattr(
        "equistein.training._checkpoint.eqx.tree_serialise_leaves", fails
    )
    with pytest.raises(OSError, match="disk full"):
        save_checkpoint(path, {"x": jnp.zeros(3)}, {})
    assert path.read_bytes() == before


def test_a_checkpoint_of_other_settings_is_refused(tmp_path):
    path, state = tmp_path / "c.eqx", {"x": jnp.ones(3)}
    save_checkpoint(path, state, {"seed": 1, "width": 8})
    with pytest.raises(CheckpointError, match=r"other settings \(seed\)"):
        load_checkpoint(path, state, {"seed": 2, "width": 8})
    with pytest.raises(CheckpointError, match=r"\(depth, width\)"):
        load_checkpoint(path, state, {"seed": 1, "depth": 8})


def test_a_checkpoint_of_another_format_is_refused(tmp_path, monkeypatch):
    path, state = tmp_path / "c.eqx", {"x": jnp.ones(3)}
    monkeypatch.setattr("equistein.training._checkpoint.FORMAT", 0)
    save_checkpoint(path, state, {})
    monkeypatch.undo()
    with pytest.raises(CheckpointError, match="format"):
        load_checkpoint(path, state, {})


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n",
        b"no json\n",
        b"\xff\xfe\x00",
        b"123\n",
        b"[]\n",
        b'"text"\n',
        b"null\n",
    ],
)
def test_a_file_that_is_no_checkpoint_is_refused(content, tmp_path):
    path = tmp_path / "c.eqx"
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match="not a checkpoint|other settings"):
        load_checkpoint(path, {"x": jnp.ones(3)}, {})


@pytest.mark.parametrize("share", [0.2, 0.5, 0.9])
def test_a_truncated_checkpoint_is_refused(share, tmp_path):
    path, state = tmp_path / "c.eqx", {"x": jnp.ones(300), "y": jnp.ones(300)}
    save_checkpoint(path, state, {"seed": 1})
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(CheckpointError, match="damaged"):
        load_checkpoint(path, state, {"seed": 1})


@pytest.mark.parametrize("place", [0.3, 0.6, 0.999])
def test_a_checkpoint_with_a_flipped_bit_is_refused(place, tmp_path):
    path, state = tmp_path / "c.eqx", {"x": jnp.ones(300), "y": jnp.ones(300)}
    save_checkpoint(path, state, {"seed": 1})
    content = bytearray(path.read_bytes())
    content[int(place * len(content))] ^= 4
    path.write_bytes(bytes(content))
    with pytest.raises(CheckpointError, match="checksum"):
        load_checkpoint(path, state, {"seed": 1})


def test_a_checkpoint_of_other_shapes_or_types_is_refused(tmp_path):
    path, header = tmp_path / "c.eqx", {"seed": 1}
    save_checkpoint(path, {"x": jnp.ones(3)}, header)
    for like in (jnp.ones(4), jnp.ones(3, jnp.float32), jnp.ones(3, int)):
        with pytest.raises(CheckpointError, match="does not fit the energy"):
            load_checkpoint(path, {"x": like}, header)


def test_a_checkpoint_holds_no_pickle(tmp_path):
    path = tmp_path / "c.eqx"
    save_checkpoint(path, {"x": jnp.ones(3)}, {"seed": 1})
    first, arrays = path.read_bytes().split(b"\n", 1)
    digest = hashlib.sha256(arrays).hexdigest()
    assert json.loads(first) == {"format": 2, "sha256": digest, "seed": 1}
    with path.open("ab") as file:
        np.save(file, np.array([{}], object), allow_pickle=True)
    like = {"x": jnp.ones(3), "y": np.array([0.0])}
    with pytest.raises(CheckpointError):
        load_checkpoint(path, like, {"seed": 1})
