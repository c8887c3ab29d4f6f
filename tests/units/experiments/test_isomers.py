import numpy as np
import pytest

from equistein.metrics import stable_atoms
from equistein.molecules import (
    atoms_of,
    embed,
    from_bonds,
    graph_smiles,
    infer_bonds,
)
from experiments._isomers import isomers

pytest.importorskip("rdkit")


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        ("CH4", {"C"}),
        ("N2", {"N#N"}),
        ("CO2", {"O=C=O"}),
        ("CHN", {"C#N"}),
        ("C2H6O", {"CCO", "COC"}),
        ("C3H8O", {"CCCO", "CC(C)O", "CCOC"}),
        ("C5H12", {"CCCCC", "CCC(C)C", "CC(C)(C)C"}),
        ("C3H4", {"C#CC", "C=C=C", "C1=CC1"}),
        ("C2H7N", {"CCN", "CNC"}),
        ("C3H7F", {"CCCF", "CC(C)F"}),
        ("C4H8", {"C=CCC", "CC=CC", "C=C(C)C", "C1CCC1", "CC1CC1"}),
    ],
)
def test_the_isomers_of_small_formulas(formula, expected):
    found = isomers(atoms_of(formula))
    assert set(found) == expected
    assert found == sorted(expected)


@pytest.mark.parametrize(
    ("formula", "count"), [("C4H10O", 7), ("C4H6", 9), ("C3H6O", 9), ("C4H9F", 4)]
)
def test_the_number_of_isomers(formula, count):
    assert len(isomers(atoms_of(formula))) == count


@pytest.mark.parametrize("formula", ["CH3", "CH6", "CH4F", "C2H8", "C", "O2H4"])
def test_a_formula_that_fits_no_molecule_has_no_isomers(formula):
    assert isomers(atoms_of(formula)) == []


@pytest.mark.parametrize(
    ("formula", "words"),
    [
        ("H2", "1 to 6 atoms"),
        ("C8H18", "1 to 6 atoms .* got C C C C C C C C"),
        ("CH3Cl", "of C, N, O, F .* got C Cl"),
    ],
)
def test_formulas_that_cannot_be_enumerated_are_refused(formula, words):
    with pytest.raises(ValueError, match=words):
        isomers(atoms_of(formula))


@pytest.mark.parametrize("formula", ["C2H6O", "C3H8O", "C2H4O", "C4H10", "CH4", "CHN"])
def test_an_embedded_graph_is_the_same_graph(formula):
    symbols = atoms_of(formula)
    for smiles in isomers(symbols):
        positions = embed(smiles, symbols)
        centered = positions - positions.mean(axis=0)
        assert graph_smiles(from_bonds(symbols, infer_bonds(symbols, centered))) == (
            smiles
        )
        assert stable_atoms(symbols, positions).all()


def test_atoms_are_embedded_in_the_order_asked_for():
    positions = embed("CO", "HCHOHH")
    assert positions.shape == (6, 3)
    carbon, oxygen = positions[1], positions[3]
    assert np.linalg.norm(carbon - oxygen) == pytest.approx(1.42, abs=0.03)
    to_oxygen = np.linalg.norm(positions[[0, 2, 4, 5]] - oxygen, axis=1)
    to_carbon = np.linalg.norm(positions[[0, 2, 4, 5]] - carbon, axis=1)
    assert np.sum(to_oxygen < 1.0) == 1
    assert np.sum(to_carbon < 1.15) == 3


def test_a_graph_too_strained_to_exist_is_not_embedded():
    assert embed("C1#CC1", "CCCHH") is None


@pytest.mark.parametrize(
    ("smiles", "symbols", "message"),
    [
        ("CO", "COHHHHH", "symbols"),
        ("CO", "CO", "symbols"),
        ("nonsense", "C", "nonsense"),
    ],
)
def test_a_graph_of_other_atoms_is_refused(smiles, symbols, message):
    with pytest.raises(ValueError, match=message):
        embed(smiles, symbols)
