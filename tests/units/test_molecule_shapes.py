import numpy as np
import pytest

from equistein.molecules import (
    angles,
    atoms_of,
    charges_of,
    distances,
    formula,
    symbols_of,
)

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


def test_a_straight_angle_is_180_and_coinciding_ends_are_0():
    row = np.array([[[-1.16, 0, 0], [0, 0, 0], [1.16, 0, 0]]])
    assert angles(list("OCO"), row, "O", "C", "O").tolist() == near(180)
    assert angles(list("OCO"), np.abs(row), "O", "C", "O").tolist() == near(0)


def test_the_angle_between_different_elements_is_counted_once():
    symbols = list("OCCH")
    right = np.array([[[1.2, 0, 0], [0, 0, 0], [0, 1.4, 0], [0, 0, 1.09]]])
    for triple in ["CCO", "OCC", "OCH", "HCC"]:
        assert angles(symbols, right, *triple).tolist() == near(90)
    assert angles(symbols, right, *"COC").shape == (0,)


def test_atoms_of_one_element_at_both_ends_and_in_the_middle():
    step = np.array([np.cos(np.pi / 3), np.sin(np.pi / 3), 0])
    chain = 1.5 * np.stack([[-1, 0, 0], [0, 0, 0], step, step + [1, 0, 0]])
    found = angles(list("CCCC"), chain[None], "C", "C", "C")
    assert found.tolist() == near(120, 120)


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


def test_charges_and_symbols_of_elements():
    assert charges_of(["H", "C", "N", "O", "F", "Cl", "Au", "Og"]) == (
        1, 6, 7, 8, 9, 17, 79, 118,
    )  # fmt: skip
    assert symbols_of([1, 6, 79]) == ("H", "C", "Au")
    assert charges_of(symbols_of(range(1, 119))) == tuple(range(1, 119))
    assert charges_of([]) == symbols_of([]) == ()


@pytest.mark.parametrize("charge", [0, -1, 119])
def test_a_number_that_is_no_charge_is_named(charge):
    with pytest.raises(ValueError, match=f"no element of nuclear charge {charge}"):
        symbols_of([6, charge])


@pytest.mark.parametrize("text", ["C5H8O", "CH4", "H2O", "CHN", "CO2", "C60", "BrH"])
def test_a_formula_survives_the_round_trip(text):
    assert formula(atoms_of(text)) == text


def test_hydrogens_are_the_last_atoms_of_a_formula():
    assert "".join(atoms_of("OH2")) == "OHH"
    assert "".join(atoms_of("C2H5OH")) == "CCOHHHHHH"
    assert atoms_of("HCl") == ("Cl", "H")
    assert atoms_of("CO") == ("C", "O")
    assert atoms_of("Co") == ("Co",)


def test_carbon_then_hydrogen_then_the_alphabet():
    assert formula(("O", "N", "H", "F", "C", "H", "Br")) == "CH2BrFNO"
    assert formula(("O", "H", "H")) == "H2O"
    assert formula(("H", "Cl")) == "ClH"  # without carbon, by the alphabet


@pytest.mark.parametrize(
    "text", ["", "c5", "C5H8O ", "5C", "C-1", "CX2", "Xx", "C99999", "C(H)4", "C\n"]
)
def test_what_is_no_formula_is_refused(text):
    with pytest.raises(ValueError, match="A formula is like C5H8O, but got"):
        atoms_of(text)


def test_charges_may_be_an_array():
    assert symbols_of(np.array([6, 1], np.int32)) == ("C", "H")


def test_symbols_in_one_word_are_measured():
    water = np.array([[[0.0, 0, 0], [0.96, 0, 0], [-0.24, 0.93, 0]]])
    assert angles("OHH", water, "H", "O", "H").shape == (1,)
    assert distances("OHH", water, "O", "H").shape == (2,)


def test_an_unknown_element_is_named():
    with pytest.raises(ValueError, match="Xx"):
        charges_of(["Xx"])


@pytest.mark.parametrize("text", ["C0", "C0H4"])
def test_none_of_an_element_is_no_formula(text):
    with pytest.raises(ValueError, match="A formula is like"):
        atoms_of(text)
