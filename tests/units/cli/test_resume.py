import json

import pytest

from equistein.cli import main
from equistein.experiments import EXPERIMENTS
from equistein.runs import config_from_json, config_to_json


def described(**changes):
    smoke = EXPERIMENTS["two-circles"].presets["smoke"]
    values = {
        "command": "run",
        "experiment": "two-circles",
        "preset": "smoke",
        "seed": 0,
        "config": config_to_json(smoke),
    }
    return values | changes


@pytest.mark.parametrize(
    "wrong",
    [
        {"version": 99},
        {"command": "walk"},
        {"command": None},
        {"experiment": "two-squares"},
        {"experiment": 3},
        {"seed": "one"},
        {"seed": -1},
        {"config": {}},
        {"config": None},
        {"config": config_to_json(EXPERIMENTS["c4-gaussians"].presets["smoke"])},
        {"config": described()["config"] | {"num_steps": "many"}},
        {"config": described()["config"] | {"num_steps": -1}},
    ],
)
def test_a_description_that_was_changed_by_hand_is_refused(
    wrong, tmp_path, capsys, unchecked
):
    (tmp_path / "config.json").write_text(json.dumps(described(**wrong)))
    assert main(["resume", str(tmp_path)]) == 2
    assert capsys.readouterr().err.startswith("equistein: ")
    assert not list(tmp_path.rglob("*.npz"))


def test_every_preset_of_every_experiment_survives_its_json():
    for experiment in EXPERIMENTS.values():
        assert {"smoke", "quick", "paper"} <= set(experiment.presets)
        for config in experiment.presets.values():
            values = json.loads(json.dumps(config_to_json(config)))
            assert config_from_json(config, values) == config
