import numpy as np
import pytest

from experiments._molecule_reference import angles, distances

HALF = np.radians(104.5) / 2
WATER = 0.96 * np.array(
    [[0, 0, 0], [np.sin(HALF), np.cos(HALF), 0], [-np.sin(HALF), np.cos(HALF), 0]]
)
METHANE = np.array([[0, 0, 0], [1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]]) * 0.63


def near(*numbers):
    return pytest.approx(list(numbers))


def test_the_angle_of_water():
    assert angles(list("OHH"), WATER[None], "H", "O", "H").tolist() == near(104.5)


def test_the_distances_of_water():
    symbols, water = tuple("OHH"), WATER[None]
    between = 2 * 0.96 * np.sin(HALF)
    assert distances(symbols, water, "O", "H").tolist() == near(0.96, 0.96)
    assert distances(symbols, water, "H", "O").tolist() == near(0.96, 0.96)
    assert distances(symbols, water, "H", "H").tolist() == near(between)


def test_methane_has_six_angles_of_a_tetrahedron():
    symbols, edge = list("CHHHH"), 0.63 * 8**0.5
    found = angles(symbols, METHANE[None], "H", "C", "H")
    assert found.tolist() == near(*6 * [np.degrees(np.arccos(-1 / 3))])
    found = distances(symbols, METHANE[None], "H", "H")
    assert found.tolist() == near(*6 * [edge])


def test_the_angle_between_different_elements_is_counted_once():
    symbols = list("OCCH")
    right = np.array([[[1.2, 0, 0], [0, 0, 0], [0, 1.4, 0], [0, 0, 1.09]]])
    for triple in ["CCO", "OCC", "OCH", "HCC"]:
        assert angles(symbols, right, *triple).tolist() == near(90)
    assert angles(symbols, right, *"COC").shape == (0,)


def test_angles_are_at_bonded_atoms_only():
    stretched = WATER * [[1], [1], [1.5]]
    assert angles(list("OHH"), stretched[None], "H", "O", "H").shape == (0,)


def test_molecules_are_measured_one_by_one():
    both = np.stack([WATER, WATER * [[1], [1], [1.5]], WATER + 7])
    found = angles(list("OHH"), both, "H", "O", "H")
    assert found.tolist() == near(104.5, 104.5)
    found = np.sort(distances(list("OHH"), both, "O", "H"))
    assert found.tolist() == near(*5 * [0.96], 1.44)


def test_elements_that_are_not_there_give_nothing():
    assert distances(list("OHH"), WATER[None], "C", "H").shape == (0,)
    assert distances(list("OHH"), WATER[None], "O", "O").shape == (0,)
    assert angles(list("OHH"), WATER[None], "C", "O", "H").shape == (0,)
