"""Checks of thermal frames: no false alarm, and the right cause first."""

import numpy as np
import pytest

from equistein.molecules import check_thermal
from thermal_sets import KELVIN, spoil, SPOILED, thermal_frames


def check(frames, how, seed):
    x, forces, energies, kelvin = spoil(frames, how, np.random.default_rng(seed))
    return check_thermal(x, forces, energies, kelvin).causes


def count(sets):
    """Return how many sets raise a warning, and how many name the cause first."""
    warned, named = dict.fromkeys(("right", *SPOILED), 0), dict.fromkeys(SPOILED, 0)
    for seed, frames in sets.items():
        for how in warned:
            causes = check(frames, how, seed)
            warned[how] += bool(causes)
            if how != "right" and causes:
                named[how] += how in causes[0]
    return warned, named


def test_right_frames_raise_no_warning_and_spoiled_ones_the_right_one():
    sets = {seed: thermal_frames(seed, 4 + seed, num=400) for seed in range(3)}
    warned, named = count(sets)
    assert warned.pop("right") == 0
    assert min(warned.values()) == 3
    assert min(named.values()) == 3


@pytest.mark.slow
def test_a_dozen_sets():  # of 40, as slowly, 38 or more are warned of and named right
    warned, named = count({seed: thermal_frames(seed) for seed in range(12)})
    assert warned.pop("right") == 0
    assert min(warned.values()) >= 11, warned
    assert min(named.values()) >= 10, named


@pytest.mark.parametrize("factor", [8.3, 0.11])
def test_a_far_temperature_is_no_unit(factor):
    frames = thermal_frames(2, 6, num=400)
    x, forces, energies = frames.positions, frames.forces, frames.energies
    found = check_thermal(x, forces, energies, KELVIN * factor)
    assert "temperature, about" in found.causes[0]
    kelvin = float(found.causes[0].split()[-2])
    assert kelvin == pytest.approx(KELVIN, rel=0.2)
    units = check_thermal(x, factor * forces, energies, KELVIN)  # but not of energies
    assert "temperature" not in units.causes[0]


@pytest.mark.parametrize("seed", range(4))
def test_energies_of_other_frames_or_of_the_wrong_sign_are_named(seed):
    frames = thermal_frames(seed, 4 + seed, num=200)
    for energies in (np.roll(frames.energies, 50), -frames.energies):
        found = check_thermal(frames.positions, frames.forces, energies, KELVIN)
        assert "the energies have the wrong sign or belong" in found.causes[0]


def test_frames_sorted_by_energy_or_with_atoms_in_turns_are_checked_too():
    frames = thermal_frames(1, 5, num=300)
    order = np.argsort(frames.energies)
    x, forces, energies = (
        each[order] for each in (frames.positions, frames.forces, frames.energies)
    )
    assert not check_thermal(x, forces, energies, KELVIN).causes
    for wrong in (-1, 23.06):
        assert check_thermal(x, wrong * forces, energies, KELVIN).causes
    turned = frames.positions[:, ::-1], frames.forces[:, ::-1]
    every, forces = frames.positions.copy(), frames.forces.copy()
    every[1::2], forces[1::2] = (each[1::2] for each in turned)
    found = check_thermal(every, forces, frames.energies, KELVIN)
    assert "correlation of energies" not in found.estimates
    assert not found.causes


def test_the_mean_of_displacements_and_forces_is_sharp_and_has_no_bias():
    frames = thermal_frames(3, 5, kind="floppy", num=2_000)
    found = check_thermal(frames.positions, frames.forces, frames.energies, KELVIN)
    virial = found.estimates["displacement virial"]
    assert virial.error < 0.05
    assert abs(virial.value - 1) < 4 * virial.error
    # A broken twin: 3 N - 3 directions, as if rotations were among the displacements.
    assert abs(virial.value * 9 / 12 - 1) > 4 * virial.error * 9 / 12
    hidden = check_thermal(frames.positions, frames.forces)
    kelvin = hidden.estimates["displacement virial"].value
    assert kelvin == pytest.approx(KELVIN * virial.value)


def test_errors_grow_with_the_correlation_of_frames():
    frames = thermal_frames(0, 4, num=400)
    again = np.repeat(np.arange(400), 4)
    one, four = (
        check_thermal(frames.positions[rows], frames.forces[rows], None, KELVIN)
        for rows in (np.arange(400), again[:1_000])
    )
    errors = [each.estimates["displacement virial"].error for each in (one, four)]
    assert 1.2 < errors[1] / errors[0] < 2  # of 250 frames, by chance of 400


def test_energies_are_compared_with_the_work_between_close_frames():
    frames = thermal_frames(4, 4, num=40)
    steps = np.linspace(0, 1, 200)[:, None, None]
    x = frames.positions[0] + 0.1 * steps * np.array([0, 0, 0, 1.0])[:, None]
    forces = -30 * (x - frames.positions[0])
    energies = 15 * np.sum((x - frames.positions[0]) ** 2, axis=(1, 2))
    for scale in (1.0, 23.06):
        found = check_thermal(x, forces, scale * energies)
        slope = found.estimates["energy over work"].value
        assert slope == pytest.approx(scale)


def test_fixed_atoms_are_named():
    frames = thermal_frames(4, 6, num=200)
    forces = frames.forces.copy()
    forces[:, :2] = 0
    causes = check_thermal(frames.positions, forces, None, KELVIN).causes
    assert "2 of the atoms" in causes[0]


def test_rounded_energies_and_torques_of_no_unit_are_named():
    frames = thermal_frames(1, 5, num=400)
    x, forces, energies = frames.positions, frames.forces, frames.energies
    equal = np.full_like(energies, -3151.0)
    assert "rounded" in check_thermal(x, forces, equal, KELVIN).causes[0]
    torn = forces.copy()
    torn[:, [0, 1, 2]] = forces[:, [1, 2, 0]] * 3
    causes = check_thermal(x, torn, energies, KELVIN).causes
    assert not any("--force-unit" in cause for cause in causes)
