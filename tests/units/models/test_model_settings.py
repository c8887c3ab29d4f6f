import pytest

from equistein.models import ContrastiveSettings, DenoisingSettings

NAN, INF = float("nan"), float("inf")
BOTH = [
    ("num_epochs", 0), ("batch_size", -1), ("batch_size", 2.0), ("epoch_batches", 0),
    ("sample_steps", 0), ("sample_at_once", 0), ("score_clip", 0.0),
    ("learning_rate", 0.0), ("learning_rate", NAN), ("gradient_clip", INF),
    ("stein_step_size", -1.0), ("langevin_step_size", -1e-9), ("bandwidth", 0.0),
    ("ema", 1.0), ("ema", 1), ("ema", -0.1), ("warm_up", -1), ("warm_up", 0.5),
    ("max_rollbacks", -1), ("energy_limit", 0.0),
]  # fmt: skip
CONTRASTIVE = [
    ("num_particles", 0), ("num_steps", 0), ("regularization", -1.0),
    ("regularization", INF), ("reset_probability", 1.5), ("cooling_fraction", -0.1),
    ("reset_to_data", 1.5), ("buffer_size", 0), ("buffer_size", 255),
    ("temperature", 0.0), ("temperature", INF), ("label_weight", -1.0),
    ("data_noise", -0.1), ("initial", "data"), ("kernel", "rbf"), ("widths", ()),
    ("widths", (4, 0)),
]  # fmt: skip
DENOISING = [("width", 0), ("depth", 0), ("sigma_min", 0.0), ("sigma_min", NAN)]
CASES = [
    *((ContrastiveSettings, *case) for case in BOTH + CONTRASTIVE),
    *((DenoisingSettings, *case) for case in BOTH + DENOISING),
]


@pytest.mark.parametrize(("kind", "name", "value"), CASES)
def test_a_wrong_setting_is_named(kind, name, value, unchecked):
    with pytest.raises(ValueError, match=f"`{name}`.*got"):
        kind(**{name: value})


@pytest.mark.parametrize("kind", [ContrastiveSettings, DenoisingSettings])
@pytest.mark.parametrize("value", [True, "1", None])
def test_what_is_no_number_is_refused(kind, value, unchecked):
    if value is None:
        kind(num_epochs=None, bandwidth=None)
        return
    with pytest.raises(ValueError, match="`sample_steps`"):
        kind(sample_steps=value)


@pytest.mark.parametrize(
    "settings",
    [
        {"stein_step_size": 0.0, "langevin_step_size": 0.0},
        {"kernel": "none", "langevin_step_size": 0.0},
    ],
)
def test_particles_that_could_not_move_are_refused(settings):
    with pytest.raises(ValueError, match="no particle moves"):
        ContrastiveSettings(**settings)


def test_what_is_at_the_edge_is_allowed():
    ContrastiveSettings(
        langevin_step_size=0.0, regularization=0.0, reset_probability=1.0,
        max_rollbacks=0, ema=0.0, buffer_size=256, num_particles=256, warm_up=0,
    )  # fmt: skip
    DenoisingSettings(stein_step_size=0.0, langevin_step_size=0.0, ema=0.0)
