"""How long a run is likely to take: beforehand, and what is left of it."""

import dataclasses
import json
import pathlib

import numpy as np
import pytest

from equistein import experiments
from equistein._durations import in_words
from equistein.experiments import expected_time, EXPERIMENTS
from equistein.experiments._processor_speed import processor_speed, REFERENCE_SPEED
from equistein.experiments.engine._time_left import time_left

TOY = EXPERIMENTS["c4-gaussians"]
QUICK, SMOKE = TOY.presets["quick"], TOY.presets["smoke"]
MEASURED = {"smoke": 10.0, "quick": 50.0}


def seconds(config, preset="quick", measured=MEASURED, speed=REFERENCE_SPEED):
    found = expected_time(TOY, config, preset, measured=measured, speed=speed)
    return found and found.seconds


def test_a_run_takes_what_compiling_takes_and_its_share_of_the_rest():
    longer = dataclasses.replace(
        QUICK, num_steps=3 * QUICK.num_steps, num_seeds=2 * QUICK.num_seeds
    )
    assert seconds(QUICK) == 50
    assert seconds(longer) == 10 + 6 * 40
    assert seconds(longer) != 6 * 50  # as if compiling took longer too
    assert seconds(QUICK, speed=REFERENCE_SPEED / 2) == 100


def test_the_preset_nearest_to_a_run_is_what_it_is_judged_by():
    paper = TOY.presets["paper"]
    assert seconds(SMOKE, "smoke") == 10
    assert seconds(paper, "paper") == 10 + 2 * 40
    assert seconds(paper, "paper", MEASURED | {"paper": 70.0}) == 70
    # Of smoke with other settings hardly anything is known but what compiling takes.
    long = dataclasses.replace(SMOKE, num_steps=QUICK.num_steps)
    share = SMOKE.num_seeds / QUICK.num_seeds
    assert np.isclose(seconds(long, "smoke"), 10 + share * 40)
    assert seconds(QUICK, measured={"smoke": 10.0, "quick": None}) is None
    assert seconds(QUICK, measured={}) is None
    assert seconds(QUICK, measured={"quick": 3.0}) == 3


def test_settings_that_do_not_enter_are_named():
    config = dataclasses.replace(QUICK, num_particles=500, num_steps=10)
    found = expected_time(TOY, config, "quick", measured=MEASURED, speed=1.0)
    assert found.uncounted == ("num_particles",)
    assert (found.preset, found.measured) == ("quick", 50)


def test_each_experiment_has_its_line_of_measured_seconds():
    file = pathlib.Path(experiments.__file__).parent / "_seconds.json"
    lines = json.loads(file.read_text())
    assert list(lines) == list(EXPERIMENTS)
    for name, line in lines.items():
        assert set(line) <= set(EXPERIMENTS[name].presets)
        assert all(value is None or value > 0 for value in line.values())


def test_the_speed_is_measured_once():
    assert processor_speed() == processor_speed() > 0


def test_what_is_left_takes_as_long_as_what_was_like_it():
    taken = {"exact": 1.0, "svgd@0": 10.0, "svgd@1": 20.0, "mala@0": 5.0}
    assert time_left(taken, ["svgd@2", "svgd@3", "mala@1"]) == 15 + 15 + 5
    assert time_left(taken, ["svgd@2", "svgd@3", "mala@1"]) != 3 * 9  # the mean of all
    assert time_left(taken, ["new"]) == 9
    assert time_left(taken, ["svgd@2", "svgd@3"], at_once=2) == 15
    assert time_left(taken, []) == 0


@pytest.mark.parametrize(
    ("length", "told"),
    [(0.2, "0 s"), (53.4, "53 s"), (180.0, "3 min"), (7200.0, "2.0 h")],
)
def test_lengths_of_time_are_said_in_words(length, told):
    assert in_words(length) == told
