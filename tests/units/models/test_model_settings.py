import pytest

from equistein.models import (
    ContrastiveSettings,
    DenoisingSettings,
    ImageSettings,
    Problem,
)

NAN, INF = float("nan"), float("inf")
CASES = [  # a class, a field, and a value that is out of range or of another type
    *((ContrastiveSettings, *case) for case in [
        ("num_epochs", 0), ("batch_size", -1), ("batch_size", 2.0),
        ("sample_steps", "1"),
        ("score_clip", 0.0), ("learning_rate", NAN), ("gradient_clip", INF),
        ("stein_step_size", -1.0), ("langevin_step_size", -1e-9), ("bandwidth", 0.0),
        ("ema", 1.0), ("ema", 1), ("ema", -0.1), ("warm_up", -1),
        ("regularization", INF), ("reset_probability", 1.5),
        ("cooling_fraction", -0.1), ("buffer_size", 0),
        ("data_noise", -0.1), ("kernel", "rbf"), ("widths", ()), ("widths", (4, 0)),
    ]),
    *((DenoisingSettings, *case) for case in [
        ("width", 0), ("sigma_min", 0.0), ("sigma_min", NAN), ("ema", 1.0),
    ]),
    (ImageSettings, "sigma_min", 0.0),
    (Problem, "held_out", 1.0), (Problem, "seed", 2**63), (Problem, "kelvin", 0.0),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "name", "value"), CASES)
def test_a_wrong_setting_is_named(kind, name, value, unchecked):
    needed = {"group": "trivial"} if kind is Problem else {}
    with pytest.raises(ValueError, match=f"`{name}`.*got"):
        kind(**needed, **{name: value})


@pytest.mark.parametrize(
    "settings",
    [
        {"stein_step_size": 0.0, "langevin_step_size": 0.0},
        {"kernel": "independent", "langevin_step_size": 0.0},
    ],
)
def test_particles_that_could_not_move_are_refused(settings):
    with pytest.raises(ValueError, match="no particle moves"):
        ContrastiveSettings(**settings)


def test_what_is_at_the_edge_is_allowed():
    ContrastiveSettings(
        langevin_step_size=0.0, regularization=0.0, reset_probability=1.0,
        ema=0.0, buffer_size=256, num_particles=256, warm_up=0,
    )  # fmt: skip
    DenoisingSettings(stein_step_size=0.0, langevin_step_size=0.0, ema=0.0)
