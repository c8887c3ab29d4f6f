import jax.numpy as jnp
import numpy as np
import pytest

from equistein.training import DENOISING, FitConfig, Lengths


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
