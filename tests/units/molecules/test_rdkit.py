import sys

import numpy as np
import pytest

from embedded import embed
from equistein.metrics import score_molecules
from equistein.molecules import geometry, has_rdkit, perceive

WATER = np.array([[0, 0, 0.117], [0, 0.757, -0.469], [0, -0.757, -0.469]])
METHANE = np.array([[0, 0, 0], [1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]]) * 0.63
PROPANE = "CCC" + 8 * "H"


@pytest.mark.parametrize("call", [lambda: perceive("OHH", WATER), lambda: geometry([])])
def test_without_rdkit_one_is_told_how_to_install_it(call, monkeypatch):
    monkeypatch.setitem(sys.modules, "rdkit", None)
    assert not has_rdkit()
    with pytest.raises(ImportError, match=r"pip install 'equistein\[molecules\]'"):
        call()


def test_with_rdkit_it_is_found(chem):
    assert has_rdkit()


def test_scores_of_three_molecules_by_hand(chem):
    positions = np.stack([METHANE, METHANE * 1.03, METHANE * 5])
    scores = score_molecules("CHHHH", positions, ["C", "CC"])
    assert scores == pytest.approx(
        {
            "atom_stability": 2 / 3, "molecule_stability": 2 / 3, "validity": 2 / 3,
            "uniqueness": 1 / 2, "num_isomers": 1, "num_novel": 0, "coverage": 1 / 2,
        }
    )  # fmt: skip
    assert score_molecules("CHHHH", positions, ["CC"])["num_novel"] == 1


def test_elements_that_no_table_knows_are_judged_by_rdkit_alone(chem):
    sulphide = np.array([[0.0, 0.0, 0.0], [0.97, 0.93, 0.0], [-0.97, 0.93, 0.0]])
    scores = score_molecules("SHH", sulphide[None], ["S"])
    assert scores["validity"] == scores["coverage"] == 1
    assert "atom_stability" not in scores


def test_what_was_perceived_already_is_not_perceived_again(chem):
    seen = [perceive("CHHHH", METHANE)] * 2
    positions = np.stack([METHANE, METHANE * 5])
    scores = score_molecules("CHHHH", positions, ["C"], perceived=seen)
    assert scores["validity"] == 1
    assert scores["molecule_stability"] == 1 / 2


def test_without_rdkit_stability_alone_is_scored(monkeypatch):
    monkeypatch.setitem(sys.modules, "rdkit", None)
    scores = score_molecules("OHH", WATER[None], ["O"])
    assert scores == {"atom_stability": 1.0, "molecule_stability": 1.0}


def test_bonds_and_angles_by_hand(chem):
    found = geometry([perceive(PROPANE, embed("CCC", PROPANE)).mol])
    assert list(found.bonds) == ["CH", "CC"]
    assert [len(lengths) for lengths in found.bonds.values()] == [8, 2]
    assert np.allclose(found.bonds["CC"], 1.52, atol=0.02)
    assert list(found.angles) == ["CCC"]
    assert np.allclose(found.angles["CCC"], 112, atol=2)
    oxirane = "CCO" + 4 * "H"
    ring = geometry([perceive(oxirane, embed("C1CO1", oxirane)).mol] * 2)
    assert list(ring.angles) == ["CCO", "COC"]
    assert np.allclose(ring.angles["CCO"], 59.5, atol=1.5)
