import sys
import time

import numpy as np
import pytest

from equistein.cli._molecule_results import molecule_numbers, molecule_pictures
from equistein.molecules import (
    bonds_of,
    drawings,
    embed,
    from_bonds,
    graph_smiles,
    has_rdkit,
    isomers,
    MissingRDKit,
    perceive,
    relax,
    score_molecules,
)

WATER = np.array([[0, 0, 0.117], [0, 0.757, -0.469], [0, -0.757, -0.469]])
METHANE = np.array([[0, 0, 0], [1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]]) * 0.63
ETHENE = np.array(
    [[0, 0, 0.66], [0, 0, -0.66]]
    + [[0, side * 0.92, end * 1.23] for end in (1, -1) for side in (1, -1)]
)
ROW = np.array([0.0, 0.0, 1.0])


@pytest.fixture
def chem():
    pytest.importorskip("rdkit")
    from rdkit import Chem

    return Chem


@pytest.mark.parametrize(
    ("symbols", "positions", "smiles"),
    [
        ("OHH", WATER, "O"),
        ("CHHHH", METHANE, "C"),
        ("CCHHHH", ETHENE, "C=C"),
        ("NN", ROW * [[0], [1.1]], "N#N"),
        ("OCO", ROW * [[-1.16], [0], [1.16]], "O=C=O"),
        ("HCN", ROW * [[-1.07], [0], [1.16]], "C#N"),
        ("FH", ROW * [[0], [0.92]], "F"),
        (("Cl", "H"), ROW * [[0], [1.27]], "Cl"),
    ],
)
def test_small_molecules_are_recognized(symbols, positions, smiles, chem):
    seen = perceive(symbols, positions)
    assert seen.smiles == smiles
    assert seen.problem is None
    assert [atom.GetSymbol() for atom in seen.mol.GetAtoms()] == list(symbols)
    assert np.array_equal(seen.mol.GetConformer().GetPositions(), positions)


@pytest.mark.parametrize(
    ("symbols", "positions", "problem"),
    [
        ("OHHOHH", np.concatenate([WATER, WATER + 5]), "several fragments"),
        ("CHHHHO", np.concatenate([METHANE, [[5, 0, 0]]]), "several fragments"),
        ("CHHHH", METHANE * 1.5, "several fragments"),
        ("OH", WATER[:2], "no bond orders fit"),
        ("CHHH", METHANE[:4], "no bond orders fit"),
        ("CHH", METHANE[:3], "radicals"),
        ("CO", ROW * [[0], [1.13]], "charges"),
        ("CHHHH", METHANE * 0, "no bond orders fit"),
        ("CHHHH", METHANE * 0.4, "no bond orders fit"),
        ("OHH", WATER + [[0], [np.nan], [0]], "not finite"),
        ("OHH", WATER + [[0], [0], [np.inf]], "not finite"),
        ("OHH", WATER * 1e200, "several fragments"),
    ],
)
def test_what_is_not_valid_has_a_problem(symbols, positions, problem, chem):
    seen = perceive(symbols, positions)
    assert seen.smiles is None
    assert seen.mol is None
    assert problem in seen.problem


def test_two_atoms_at_one_place_are_no_molecule(chem):
    positions = METHANE.copy()
    positions[2] = positions[1]
    assert perceive("CHHHH", positions).smiles is None


def test_the_order_of_the_atoms_and_where_they_are_do_not_matter(chem):
    turn, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))
    order = [3, 1, 4, 0, 2, 5]
    moved = (ETHENE @ turn.T + 100)[order]
    assert perceive(["CCHHHH"[i] for i in order], moved).smiles == "C=C"


def test_mirror_images_have_one_graph(chem):
    ends = METHANE[1:] / np.linalg.norm(METHANE[1])
    arms = ends * [[1.09], [1.36], [1.42], [1.76]]
    hydrogen = arms[2] + 0.96 * ends[0]
    positions = np.stack([np.zeros(3), *arms, hydrogen])
    symbols = ("C", "H", "F", "O", "Cl", "H")
    assert perceive(symbols, positions).smiles == "OC(F)Cl"
    assert perceive(symbols, positions * [1, 1, -1]).smiles == "OC(F)Cl"


@pytest.mark.parametrize("width", [1.0, 2.0, 3.0, 4.5])
def test_a_dense_cluster_does_not_hang(width, chem):
    positions = np.random.default_rng(0).uniform(0, width, (40, 3))
    start = time.perf_counter()
    assert perceive(40 * "C", positions).smiles is None
    assert time.perf_counter() - start < 2


@pytest.mark.parametrize(
    "symbols", [24 * "O", 24 * "N", 41 * "N"], ids=["O24", "N24", "N41"]
)
def test_a_long_chain_does_not_hang(symbols, chem):
    # the search for bond orders would go on for minutes
    positions = ROW * 1.4 * np.arange(len(symbols))[:, None]
    start = time.perf_counter()
    assert perceive(symbols, positions).smiles is None
    assert time.perf_counter() - start < 2


def test_all_of_qm9_is_recognized(qm9, chem):
    symbols, positions, smiles = qm9
    assert len(smiles) == len(set(smiles)) == 48
    assert [perceive(symbols, molecule).smiles for molecule in positions] == smiles


def test_a_fifth_of_the_authors_samples_is_valid(authors, qm9, chem):
    symbols, positions = authors
    found = [perceive(symbols, molecule).smiles for molecule in positions]
    graphs = {smiles for smiles in found if smiles is not None}
    assert sum(smiles is not None for smiles in found) == 12
    assert len(graphs) == 9
    assert len(graphs - set(qm9[2])) == 2


def test_bonds_make_a_molecule(chem):
    bent = np.array([[0, 1, 1], [1, 0, 0], [1, 0, 0]])
    water = from_bonds("OHH", bent, WATER)
    assert graph_smiles(water) == "O"
    assert np.array_equal(water.GetConformer().GetPositions(), WATER)
    assert from_bonds("OHH", bent).GetNumConformers() == 0
    for symbols, order, smiles in [
        ("NN", 3, "N#N"),
        ("OO", 2, "O=O"),
        ("CC", 4, "C$C"),
    ]:
        mol = from_bonds(symbols, np.array([[0, order], [order, 0]]))
        assert graph_smiles(mol) == smiles


@pytest.mark.parametrize(
    ("stereo", "plain"), [("C/C=C/C", "CC=CC"), ("O[C@H](F)Cl", "OC(F)Cl")]
)
def test_a_graph_has_no_stereochemistry(stereo, plain, chem):
    mol = chem.AddHs(chem.MolFromSmiles(stereo))
    assert graph_smiles(mol) == plain
    assert chem.MolToSmiles(chem.RemoveHs(mol)) == stereo  # what went in is untouched


def test_bonds_of_a_molecule_are_those_it_was_made_of(chem):
    bent = np.array([[0, 2, 0], [2, 0, 2], [0, 2, 0]])
    assert np.array_equal(bonds_of(from_bonds("OCO", bent)), bent)
    ring = np.zeros((12, 12), int)
    for i in range(6):  # benzene, whose bonds RDKit calls aromatic
        ring[i, (i + 1) % 6] = ring[(i + 1) % 6, i] = 1 + i % 2
        ring[i, i + 6] = ring[i + 6, i] = 1
    orders = bonds_of(from_bonds("C" * 6 + "H" * 6, ring))
    assert np.array_equal(orders > 0, ring > 0)
    assert np.array_equal(orders.sum(axis=1), ring.sum(axis=1))


def test_missing_hydrogens_are_not_made_up(chem):
    assert graph_smiles(from_bonds("CH", np.array([[0, 1], [1, 0]]))) == "[CH]"


def test_bonds_beyond_the_valence_are_refused(chem):
    with pytest.raises(ValueError, match="valence"):
        from_bonds("CH", np.array([[0, 2], [2, 0]]))


def test_a_relaxed_molecule_stays_where_it_is(chem):
    seen = perceive("CCHHHH", ETHENE)
    relaxed, moved = relax(seen.mol)
    assert 1e-3 < moved < 0.2
    again, rest = relax(perceive("CCHHHH", relaxed).mol)
    assert rest < 1e-3
    assert np.allclose(again, relaxed, atol=2e-3)


def test_relaxed_positions_are_turned_onto_those_before(chem):
    seen = perceive("CCHHHH", ETHENE + [3, -2, 7])
    relaxed, moved = relax(seen.mol)
    before = seen.mol.GetConformer().GetPositions()
    assert np.array_equal(before, ETHENE + [3, -2, 7])  # what went in is untouched
    assert np.isclose(np.sqrt(((relaxed - before) ** 2).sum(axis=1).mean()), moved)
    assert np.allclose(relaxed.mean(axis=0), before.mean(axis=0), atol=1e-6)


def test_a_stretched_bond_relaxes_to_its_length(chem):
    relaxed, moved = relax(perceive("OHH", WATER * 1.1).mol)
    assert np.linalg.norm(relaxed[0] - relaxed[1]) == pytest.approx(0.969, abs=0.01)
    assert moved > 0.05


def test_a_molecule_without_parameters_is_not_relaxed(chem):
    orders = np.zeros((4, 4), int)
    orders[0, 1:] = orders[1:, 0] = 1
    relaxed, moved = relax(from_bonds("BHHH", orders, METHANE[:4]))
    assert relaxed.shape == (4, 3)
    assert np.isnan(relaxed).all()
    assert np.isnan(moved)


def test_qm9_hardly_moves(qm9, chem):
    symbols, positions, _ = qm9
    moved = [relax(perceive(symbols, molecule).mol)[1] for molecule in positions[:12]]
    assert np.median(moved) < 0.15
    assert max(moved) < 1


def test_a_drawing_has_a_place_for_each_molecule(chem):
    mol = perceive("CCHHHH", ETHENE).mol
    picture = drawings([mol, None, mol], ["one", "", "three"], columns=2)
    assert picture.shape == (2 * 140, 2 * 170, 3)
    assert picture.dtype == np.uint8
    upper, lower = picture[:140], picture[140:]
    assert upper[:, :170].min() < 128
    assert (upper[:, 170:] == 255).all()  # none
    assert lower[:, :170].min() < 128
    assert (lower[:, 170:] == 255).all()
    assert mol.GetNumAtoms() == 6  # hydrogens and positions are kept
    assert mol.GetNumConformers() == 1


def test_scores_of_three_molecules_by_hand(chem):
    positions = np.stack([METHANE, METHANE * 1.03, METHANE * 5])
    scores = score_molecules("CHHHH", positions, ["C", "CC"])
    assert scores.num_molecules == 3
    assert scores.atom_stability == pytest.approx(2 / 3)
    assert scores.molecule_stability == pytest.approx(2 / 3)
    assert scores.validity == pytest.approx(2 / 3)
    assert scores.uniqueness == 1 / 2
    assert (scores.num_isomers, scores.num_novel) == (1, 0)
    assert scores.coverage == 1 / 2
    assert score_molecules("CHHHH", positions, ["CC"]).num_novel == 1


def test_elements_that_no_table_knows_are_judged_by_rdkit_alone(chem):
    sulphide = np.array([[0.0, 0.0, 0.0], [0.97, 0.93, 0.0], [-0.97, 0.93, 0.0]])
    scores = score_molecules("SHH", sulphide[None], ["S"])
    assert scores.validity == scores.coverage == 1
    assert np.isnan(scores.atom_stability)
    assert np.isnan(scores.molecule_stability)
    numbers = molecule_numbers("SHH", sulphide[None], sulphide[None])
    assert numbers["validity"] == 1
    assert "atom_stability" not in numbers
    assert set(molecule_pictures("SHH", sulphide[None])) == {"molecules", "turned"}


def test_scores_without_valid_or_known_molecules(chem):
    scores = score_molecules("CHHHH", METHANE[None] * 5, [])
    assert scores.validity == scores.num_isomers == 0
    assert np.isnan(scores.uniqueness)
    assert np.isnan(scores.coverage)


def test_what_was_perceived_already_is_not_perceived_again(chem):
    seen = [perceive("CHHHH", METHANE)] * 2
    positions = np.stack([METHANE, METHANE * 5])
    scores = score_molecules("CHHHH", positions, ["C"], perceived=seen)
    assert scores.validity == 1
    assert scores.molecule_stability == 1 / 2


@pytest.mark.parametrize(
    "call",
    [
        lambda: perceive("OHH", WATER),
        lambda: from_bonds("OH", np.array([[0, 1], [1, 0]])),
        lambda: isomers("CHHHH"),
        lambda: embed("C", "CHHHH"),
        lambda: relax(None),
        lambda: drawings([None], [""]),
        lambda: score_molecules("OHH", WATER[None], ["O"]),
    ],
    ids=["perceive", "bonds", "isomers", "embed", "relax", "drawings", "scores"],
)
def test_without_rdkit_one_is_told_how_to_install_it(call, monkeypatch):
    monkeypatch.setitem(sys.modules, "rdkit", None)
    assert not has_rdkit()
    with pytest.raises(MissingRDKit, match=r"pip install 'equistein\[molecules\]'"):
        call()


def test_with_rdkit_it_is_found(chem):
    assert has_rdkit()


def test_an_unknown_element_is_named_by_perceive(chem):
    with pytest.raises(ValueError, match="Xx"):
        perceive(["Xx"], np.zeros((1, 3)))


def test_no_atoms_are_no_molecule(chem):
    assert perceive([], np.zeros((0, 3))).smiles is None


def test_no_molecules_are_refused(chem):
    with pytest.raises(ValueError, match="at least one"):
        drawings([], [])
    with pytest.raises(ValueError, match="at least one"):
        score_molecules("CHHHH", np.zeros((0, 5, 3)), ["C"])
