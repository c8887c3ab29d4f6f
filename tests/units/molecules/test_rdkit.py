import sys

import numpy as np
import pytest

from equistein.molecules import (
    embed,
    from_bonds,
    geometry,
    has_rdkit,
    isomers,
    MissingRDKit,
    perceive,
    relax,
    score_molecules,
    strain,
)

WATER = np.array([[0, 0, 0.117], [0, 0.757, -0.469], [0, -0.757, -0.469]])
ETHENE = np.array(
    [[0, 0, 0.66], [0, 0, -0.66]]
    + [[0, side * 0.92, end * 1.23] for end in (1, -1) for side in (1, -1)]
)
METHANE = np.array([[0, 0, 0], [1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]]) * 0.63
PROPANE = "CCC" + 8 * "H"


@pytest.mark.parametrize(
    "call",
    [
        lambda: perceive("OHH", WATER),
        lambda: from_bonds("OH", np.array([[0, 1], [1, 0]])),
        lambda: isomers("CHHHH"),
        lambda: embed("C", "CHHHH"),
        lambda: relax(None),
        lambda: score_molecules("OHH", WATER[None], ["O"]),
    ],
    ids=["perceive", "bonds", "isomers", "embed", "relax", "scores"],
)
def test_without_rdkit_one_is_told_how_to_install_it(call, monkeypatch):
    monkeypatch.setitem(sys.modules, "rdkit", None)
    assert not has_rdkit()
    with pytest.raises(MissingRDKit, match=r"pip install 'equistein\[molecules\]'"):
        call()


def test_with_rdkit_it_is_found(chem):
    assert has_rdkit()


def test_a_relaxed_molecule_stays_where_it_is(chem):
    seen = perceive("CCHHHH", ETHENE)
    relaxed, moved, _ = relax(seen.mol)
    assert 1e-3 < moved < 0.2
    again, rest, energy = relax(perceive("CCHHHH", relaxed).mol)
    assert rest < 1e-3
    assert np.allclose(again, relaxed, atol=2e-3)


def test_relaxed_positions_are_turned_onto_those_before(chem):
    seen = perceive("CCHHHH", ETHENE + [3, -2, 7])
    relaxed, moved, _ = relax(seen.mol)
    before = seen.mol.GetConformer().GetPositions()
    assert np.array_equal(before, ETHENE + [3, -2, 7])  # what went in is untouched
    assert np.isclose(np.sqrt(((relaxed - before) ** 2).sum(axis=1).mean()), moved)
    assert np.allclose(relaxed.mean(axis=0), before.mean(axis=0), atol=1e-6)


def test_a_stretched_bond_relaxes_to_its_length(chem):
    relaxed, moved, _ = relax(perceive("OHH", WATER * 1.1).mol)
    assert np.linalg.norm(relaxed[0] - relaxed[1]) == pytest.approx(0.969, abs=0.01)
    assert moved > 0.05


def test_a_molecule_without_parameters_is_not_relaxed(chem):
    orders = np.zeros((4, 4), int)
    orders[0, 1:] = orders[1:, 0] = 1
    relaxed, moved, _ = relax(from_bonds("BHHH", orders, METHANE[:4]))
    assert relaxed.shape == (4, 3)
    assert np.isnan(relaxed).all()
    assert np.isnan(moved)


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


def test_what_was_perceived_already_is_not_perceived_again(chem):
    seen = [perceive("CHHHH", METHANE)] * 2
    positions = np.stack([METHANE, METHANE * 5])
    scores = score_molecules("CHHHH", positions, ["C"], perceived=seen)
    assert scores.validity == 1
    assert scores.molecule_stability == 1 / 2


@pytest.fixture
def propane(chem):
    positions = embed("CCC", PROPANE)
    return [perceive(PROPANE, factor * positions).mol for factor in (1.0, 1.03)]


def test_only_a_stretched_molecule_is_strained(propane):
    energies, displacements = strain(propane)
    assert abs(energies[0]) < 1e-3
    assert displacements[0] < 1e-2
    # Ten bonds of some 5 mdyn / Angstrom, 72 kcal/mol per half square Angstrom each.
    assert 1 < energies[1] < 20
    assert displacements[1] > 0.02
    assert len(strain(propane, max_num=1).energies) == 1


def test_bonds_angles_and_rings_by_hand(propane, chem):
    found = geometry(propane[:1])
    assert list(found.bonds) == ["CH", "CC"]
    assert [len(lengths) for lengths in found.bonds.values()] == [8, 2]
    assert np.allclose(found.bonds["CC"], 1.52, atol=0.02)
    assert list(found.angles) == ["CCC"]
    assert np.allclose(found.angles["CCC"], 112, atol=2)
    assert len(found.rings) == 0
    oxirane = "CCO" + 4 * "H"
    ring = geometry([perceive(oxirane, embed("C1CO1", oxirane)).mol] * 2)
    assert ring.rings.tolist() == [3, 3]
    assert ring.num_molecules == 2
    assert list(ring.angles) == ["CCO", "COC"]
    assert np.allclose(ring.angles["CCO"], 59.5, atol=1.5)
