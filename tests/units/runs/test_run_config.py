import dataclasses
import json

import pytest

from equistein.runs import settings_from_json, settings_to_json


@dataclasses.dataclass(frozen=True, kw_only=True)
class Inner:
    rate: float = 0.1
    epochs: tuple[int, ...] = ()


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config:
    num_steps: int = 3
    radii: tuple[float, ...] = (1.0, 4.0)
    models: tuple[str, ...] = ("plain",)
    quick: bool = False
    width: int | None = None
    inner: Inner = Inner()

    def __post_init__(self):
        if self.num_steps < 1:
            raise ValueError(f"`num_steps` must be positive, but got {self.num_steps}.")


@pytest.mark.parametrize(
    "config",
    [Config(), Config(width=2, radii=(), inner=Inner(rate=1.0, epochs=(3, 4)))],
)
def test_a_config_survives_its_json(config):
    values = json.loads(json.dumps(settings_to_json(config)))
    assert settings_from_json(Config, values) == config


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("num_steps", "many"), ("num_steps", 2.5), ("num_steps", True),
        ("num_steps", -1), ("radii", 4.0), ("radii", [1.0, "two"]), ("quick", 1),
        ("width", {}), ("wheels", 3), ("inner", {"rate": 0.5}), ("inner", 3),
    ],
)  # fmt: skip
def test_a_config_that_does_not_fit_is_refused(name, value):
    with pytest.raises(ValueError, match=name):
        settings_from_json(Config, settings_to_json(Config()) | {name: value})


def test_what_is_no_object_and_no_finite_number_is_refused():
    for values in (None, [], "text"):
        with pytest.raises(ValueError, match="Config"):
            settings_from_json(Config, values)
    with pytest.raises(ValueError, match="Inner must be finite"):
        settings_to_json(Inner(rate=float("inf")))
