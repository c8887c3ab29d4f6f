"""The command that makes a run again."""

import dataclasses
import shlex

import pytest

from equistein.cli._parse import parsed
from equistein.cli._words import words_of
from equistein.experiments import EXPERIMENTS
from equistein.runs import config_to_json, Words
from equistein.runs._command import command_of, flags, without_out


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("run a --out runs/a --seed 1", "run a --seed 1"),
        ("run a --out=runs/a", "run a"),
        ("run a --seed 1", "run a --seed 1"),
        ("run a --out", "run a"),
    ],
)
def test_the_folder_of_before_is_left_out(given, kept):
    assert without_out(given.split()) == kept.split()


def test_settings_are_told_by_their_options():
    usual = {"a": 1, "b": True, "c": [1, 2], "fit": {"d_e": None, "f": False}}
    values = {"a": 2, "b": False, "c": [3], "fit": {"d_e": 1, "f": True}}
    told = "--a 2 --no-b --c 3 --fit.d-e 1 --fit.f"
    assert flags(values, usual) == told.split()
    assert flags(usual, usual) == []


def test_the_process_is_told_only_where_it_made_the_run():
    words, described = Words(title="t"), {"command": "sweep"}
    made = {"command": ["equistein", "sweep", "a b", "--out", "x"]}
    assert command_of(words, described, made) == "equistein sweep 'a b'"
    script = {"command": ["equistein", "--verbose"]}
    assert command_of(words, described, script) == ""
    assert command_of(words, described, {}) == ""


@pytest.mark.parametrize("name", EXPERIMENTS)
@pytest.mark.usefixtures("single_precision")
def test_the_command_of_an_experiment_has_its_settings(name):
    experiment = EXPERIMENTS[name]
    for preset, config in experiment.presets.items():
        changed = dataclasses.replace(config, num_seeds=7)
        command = experiment.words(changed, "of its own", 3).command
        assert command[:2] == ["equistein", "run"]
        run = parsed(list(command[1:])).experiment
        assert (run.seed, run.out) == (3, None)
        assert config_to_json(run.config) == config_to_json(changed), preset
    assert experiment.words(config, "").command == ()  # none that a shell knows


def test_the_command_of_a_fit_has_its_data_and_settings():
    fit = parsed(
        shlex.split("fit data.npy --group cyclic:4 --seed 2 --num-epochs 3 --no-labels")
    )
    described = {
        "command": "fit", "data": "data.npy", "num_held_out": 1,
        "problem": config_to_json(fit.problem) | {"network": "features"},
        "settings": config_to_json(fit.settings),
    }  # fmt: skip
    command = words_of(described).command
    again = parsed(list(command[1:]))
    assert again.settings == fit.settings
    assert again.problem == dataclasses.replace(fit.problem, network="features")
    assert words_of({"command": "fit"}).command == []
