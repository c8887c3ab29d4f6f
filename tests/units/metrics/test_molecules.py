import numpy as np
import pytest

from equistein.metrics import bond_orders, score_molecules
from equistein.molecules import symbols_of, valences_of

AUTHORS = tuple("CCCOCC" + 8 * "H")
METHANE = np.array([[0, 0, 0], [1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]]) * 0.63


def stable_atoms(symbols, positions):
    return bond_orders(symbols, positions).sum(axis=-1) == valences_of(symbols)


def order(first, second, length):
    """Return the order of the bond of two atoms so far apart, in Angstrom."""
    orders = bond_orders((first, second), np.array([[0, 0, 0], [length, 0, 0]]))
    assert orders[0, 1] == orders[1, 0]
    assert orders[0, 0] == orders[1, 1] == 0
    return orders[0, 1]


@pytest.mark.parametrize(
    ("first", "second", "lengths"),
    [
        ("C", "C", (1.64, 1.39, 1.23)),
        ("C", "N", (1.57, 1.34, 1.19)),
        ("C", "O", (1.53, 1.25, 1.16)),
        ("N", "N", (1.55, 1.30, 1.13)),
        ("O", "N", (1.50, 1.26)),
        ("O", "O", (1.58, 1.26)),
        ("C", "F", (1.45,)),
        ("N", "F", (1.46,)),
        ("O", "F", (1.52,)),
        ("F", "F", (1.52,)),
        ("H", "H", (0.84,)),
        ("C", "H", (1.19,)),
        ("N", "H", (1.11,)),
        ("O", "H", (1.06,)),
        ("F", "H", (1.02,)),
    ],
)
def test_the_table_of_lengths(first, second, lengths):
    for number, length in enumerate(lengths):
        for pair in [(first, second), (second, first)]:
            assert order(*pair, length + 1e-3) == number
            assert order(*pair, length - 1e-3) == number + 1
    assert order(first, second, 0.1) == len(lengths)


def test_methane_is_stable_and_shrunk_or_stretched_it_is_not():
    symbols = "CHHHH"
    sizes = np.array([1.0, 1.12, 0.4])[:, None, None]
    stable = stable_atoms(symbols, METHANE * sizes)
    assert stable[0].all()
    assert not stable[1].any()  # no bonds
    assert list(stable[2]) == [True, False, False, False, False]  # bonds H-H


def test_one_atom_off_spoils_itself_and_its_neighbour():
    moved = METHANE.copy()
    moved[1] *= 2
    assert list(stable_atoms("CHHHH", moved)) == [False, False, True, True, True]


def test_an_element_that_is_not_in_the_table_is_named():
    with pytest.raises(ValueError, match="Cl, S have several"):
        bond_orders(["C", "S", "Cl"], np.zeros((3, 3)))


def test_all_of_qm9_is_stable(qm9_folder):
    with np.load(qm9_folder / "qm9_C5H8O.npz") as file:
        symbols, positions = symbols_of(file["charges"][0].tolist()), file["positions"]
    assert positions.shape == (48, 14, 3)
    assert stable_atoms(symbols, positions).all()


def test_the_authors_samples_have_their_scores(qm9_folder):
    pytest.importorskip("rdkit")
    with np.load(qm9_folder / "qm9_C5H8O.npz") as file:
        known, train = file["smiles"], file["smiles"][file["split"] == "train"]
    positions = np.load(qm9_folder / "authors_sampled_molecules.npy").reshape(64, 14, 3)
    scores = score_molecules(AUTHORS, positions, known)
    assert scores == {
        "atom_stability": 731 / 896, "molecule_stability": 6 / 64, "validity": 12 / 64,
        "uniqueness": 9 / 12, "num_isomers": 9, "num_novel": 2, "coverage": 7 / 48,
    }  # fmt: skip
    assert score_molecules(AUTHORS, positions, train)["coverage"] == 4 / 35
