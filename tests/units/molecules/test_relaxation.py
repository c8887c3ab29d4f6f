import numpy as np
import pytest

from equistein.molecules import from_bonds, perceive, relax

WATER = np.array([[0, 0, 0.117], [0, 0.757, -0.469], [0, -0.757, -0.469]])
METHANE = np.array([[0, 0, 0], [1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]]) * 0.63
ETHENE = np.array(
    [[0, 0, 0.66], [0, 0, -0.66]]
    + [[0, side * 0.92, end * 1.23] for end in (1, -1) for side in (1, -1)]
)


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
