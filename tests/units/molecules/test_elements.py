import pytest

from equistein.molecules import atomic_numbers_of, atoms_of, formula, symbols_of


def test_atomic_numbers_and_symbols_of_elements():
    assert atomic_numbers_of(["H", "C", "N", "O", "F", "Cl", "Au", "Og"]) == (
        1, 6, 7, 8, 9, 17, 79, 118,
    )  # fmt: skip
    assert symbols_of([1, 6, 79]) == ("H", "C", "Au")
    assert atomic_numbers_of(symbols_of(range(1, 119))) == tuple(range(1, 119))
    assert atomic_numbers_of([]) == symbols_of([]) == ()


@pytest.mark.parametrize("number", [0, -1, 119])
def test_a_number_that_is_no_atomic_number_is_named(number):
    with pytest.raises(ValueError, match=f"no element of atomic number {number}"):
        symbols_of([6, number])


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
    "text", ["", "c5", "C5H8O ", "5C", "C-1", "CX2", "C99999", "C(H)4", "C\n", "C0"]
)
def test_what_is_no_formula_is_refused(text):
    with pytest.raises(ValueError, match="A formula is like C5H8O, but got"):
        atoms_of(text)


def test_an_unknown_element_is_named():
    with pytest.raises(ValueError, match="Xx"):
        atomic_numbers_of(["Xx"])
