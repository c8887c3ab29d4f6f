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
    ("wrong", "said"),
    [
        ({"num_steps": "many"}, "num_steps"),
        ({"num_steps": 2.5}, "num_steps"),
        ({"num_steps": True}, "num_steps"),
        ({"num_steps": -1}, "must be positive"),
        ({"radii": 4.0}, "radii"),
        ({"radii": [1.0, "two"]}, "radii"),
        ({"quick": 1}, "quick"),
        ({"width": {}}, "width"),
        ({"wheels": 3}, "wheels"),
        ({"inner": {"rate": 0.5}}, "inner"),
        ({"inner": 3}, "inner"),
    ],
)
def test_a_config_that_does_not_fit_is_refused(wrong, said):
    with pytest.raises(ValueError, match=said):
        settings_from_json(Config, settings_to_json(Config()) | wrong)


@pytest.mark.parametrize("values", [None, [], "text"])
def test_what_is_no_object_is_no_config(values):
    with pytest.raises(ValueError, match="invalid Config"):
        settings_from_json(Config, values)


def test_a_number_that_is_not_finite_is_refused():
    with pytest.raises(ValueError, match="Inner must be finite"):
        settings_to_json(Inner(rate=float("inf")))
