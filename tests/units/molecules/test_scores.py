import numpy as np
import pytest

from equistein.molecules import perceive, score_molecules

METHANE = np.array([[0, 0, 0], [1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]]) * 0.63


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
