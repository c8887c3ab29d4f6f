import dataclasses
import json

import pytest

from equistein.runs import config_from_json, config_to_json


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
    values = json.loads(json.dumps(config_to_json(config)))
    assert config_from_json(Config(), values) == config


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"num_steps": "many"}, "`num_steps` is 'many'"),
        ({"num_steps": 2.5}, "`num_steps` is 2.5"),
        ({"num_steps": True}, "`num_steps` is True"),
        ({"num_steps": -1}, "must be positive"),
        ({"radii": 4.0}, "`radii` is 4.0"),
        ({"radii": [1.0, "two"]}, "`radii`"),
        ({"quick": 1}, "`quick` is 1"),
        ({"width": {}}, "`width`"),
        ({"wheels": 3}, "has wheels"),
        ({"inner": {"rate": 0.5}}, "lacks epochs"),
        ({"inner": 3}, "3 is no object"),
    ],
)
def test_a_config_that_does_not_fit_is_refused(wrong, said):
    with pytest.raises(ValueError, match=said):
        config_from_json(Config(), config_to_json(Config()) | wrong)


@pytest.mark.parametrize("values", [None, [], "text"])
def test_what_is_no_object_is_no_config(values):
    with pytest.raises(ValueError, match="is no object"):
        config_from_json(Config(), values)


def test_a_number_that_is_not_finite_is_refused():
    with pytest.raises(ValueError, match="Inner must be finite"):
        config_to_json(Inner(rate=float("inf")))
