import numpy as np
import pytest

from equistein.molecules import (
    bond_orders,
    from_bonds,
    graph_smiles,
    infer_bonds,
)

VALENCE = {"C": 4, "N": 3, "O": 2, "F": 1, "H": 1}


def bonds(symbols, *positions):
    """Return the bonds as {pair: order}, for positions of one to three numbers."""
    points = np.zeros((len(symbols), 3))
    for point, position in zip(points, positions, strict=True):
        point[: np.size(position)] = position
    orders = infer_bonds(symbols, points)
    assert np.array_equal(orders, orders.T)
    return {
        (int(i), int(j)): int(orders[i, j])
        for i, j in zip(*np.nonzero(np.triu(orders)), strict=True)
    }


def test_the_tree_starts_at_the_heavy_atom_nearest_the_origin():
    assert bonds("OFF", 0, 1.0, 1.8) == {(0, 1): 1, (0, 2): 1}
    assert bonds("OFF", -1.0, 0, 0.8) == {(1, 2): 1}  # and the oxygen is left alone


def test_a_hydrogen_at_the_origin_starts_no_tree():
    assert bonds("HOFF", 0, 0.1, 1.1, 1.9) == {(1, 2): 1, (1, 3): 1}


def test_the_tree_takes_the_atom_nearest_to_any_atom_in_it():
    # the last is bonded to the third, which is further from the origin than the first
    assert bonds("OFOF", 0, -0.9, 1.4, 2.4) == {(0, 1): 1, (0, 2): 1, (2, 3): 1}


def test_an_atom_without_a_free_valence_takes_no_more():
    # all are nearest to the first oxygen, which has two bonds before the last comes
    orders = bonds("OFFF", 0, 1.0, (0, 1.1), (0, 0, 1.2))
    assert orders == {(0, 1): 1, (0, 2): 1}
    orders = bonds("OOFF", 0, (0, 1.1), -1.0, (1.2, 0))
    assert orders == {(0, 2): 1, (0, 1): 1, (1, 3): 1}


def test_the_hydrogen_furthest_from_its_heavy_atom_is_bonded_first():
    # both are nearest to the first oxygen; the one that is further away gets it
    orders = bonds("OOHH", 0, 1.4, (0, 0.9), (0, -1.0))
    assert orders == {(0, 1): 1, (0, 3): 1, (1, 2): 1}


def test_distances_of_hydrogens_are_computed_anew_after_each():
    # 1.0 goes first; then the hydrogen at .95 has to go to the other oxygen, and is
    # further from it than the last hydrogen, for which no valence is left
    orders = bonds("OOHHH", 0, 1.4, (0, 1.0), (0, -0.95), (1.4, 0.97))
    assert orders == {(0, 1): 1, (0, 2): 1, (1, 3): 1}


def test_a_hydrogen_may_be_far_away():
    assert bonds("OHH", 0, 500.0, (0, 1.0)) == {(0, 1): 1, (0, 2): 1}


def test_hydrogens_come_before_double_bonds():
    hydrogens = [(-0.6, 0.9), (-0.6, -0.9), (1.9, 0.9), (1.9, -0.9)]
    ethene = bonds("CCHHHH", 0, 1.33, *hydrogens)
    assert ethene == {(0, 1): 2, (0, 2): 1, (0, 3): 1, (1, 4): 1, (1, 5): 1}
    assert bonds("CCHH", 0, 1.2, -1.06, 2.26) == {(0, 1): 3, (0, 2): 1, (1, 3): 1}


@pytest.mark.parametrize(
    ("gap", "expected"), [(1.05, {(1, 2): 1}), (1.09, {(1, 2): 1}), (1.11, {(0, 1): 2})]
)
def test_a_new_bond_may_be_a_tenth_longer_than_one_to_raise(gap, expected):
    # N-O at 1.0, bonded; O-O at `gap`, not bonded; N and the last O are joined by
    # another oxygen. N and both ends have one valence left.
    tree = {(0, 1): 1, (0, 3): 1, (2, 3): 1}
    orders = bonds("NOOO", 0, 1.0, (1.0, gap), (0.35, 0.75))
    assert orders == tree | expected


def test_the_closest_pair_is_bonded_though_no_pair_is_left_to_raise():
    hydrogens = [(-0.5, 0, 1), (-0.5, 0, -1), (0.5, 1.2, 1), (0.5, 1.2, -1), (2, 0, 1)]
    ring = bonds("CCCHHHHHH", 0, (0.75, 1.3), 1.5, *hydrogens, (2, 0, -1))
    assert {pair for pair in ring if max(pair) < 3} == {(0, 1), (0, 2), (1, 2)}
    assert set(ring.values()) == {1}


def test_heavy_atoms_alone():
    assert bonds("OCO", -1.16, 0, 1.16) == {(0, 1): 2, (1, 2): 2}
    assert bonds("NN", 0, 1.1) == {(0, 1): 3}
    assert bonds("FF", 0, 1.4) == {(0, 1): 1}
    assert bonds("C", 0) == {}


def test_hydrogens_alone_have_no_bonds():
    assert bonds("H", 0) == {}
    assert bonds("HH", 0, 0.74) == {}


def test_one_atom_too_many_keeps_its_valence():
    assert bonds("OH", 0, 0.97) == {(0, 1): 1}
    assert bonds("FHH", 0, 0.9, -1.0) == {(0, 2): 1}


def test_the_valences_are_kept_wherever_the_atoms_are():
    rng = np.random.default_rng(0)
    for _ in range(100):
        symbols = rng.choice(list("CCNOFHHH"), size=rng.integers(1, 16))
        positions = rng.normal(size=(len(symbols), 3)) * rng.uniform(0, 4)
        orders = infer_bonds(symbols.tolist(), positions)
        left = np.array([VALENCE[s] for s in symbols]) - orders.sum(axis=1)
        heavy = symbols != "H"
        assert np.array_equal(orders, orders.T)
        assert not np.diag(orders).any()
        assert not orders[~heavy][:, ~heavy].any()
        assert left.min() >= 0
        assert np.sum(left[heavy] > 0) <= 1  # else there would be another bond
        assert not (left[~heavy].any() and left[heavy].any())


def test_coinciding_atoms_are_bonded_within_their_valences():
    symbols = "CCOHHHH"
    orders = infer_bonds(symbols, np.zeros((7, 3)))
    assert not np.diag(orders).any()
    assert (orders.sum(axis=1) <= [VALENCE[s] for s in symbols]).all()
    assert orders.sum() == 2 * (2 + 4 + 1)  # a tree, the hydrogens, and one more


def test_the_order_of_the_atoms_does_not_matter():
    rng = np.random.default_rng(1)
    symbols, positions = "CCOHHHHHH", rng.normal(size=(9, 3))
    orders = infer_bonds(symbols, positions)
    order = rng.permutation(9)
    permuted = infer_bonds([symbols[i] for i in order], positions[order])
    assert np.array_equal(permuted, orders[np.ix_(order, order)])


def test_turned_about_the_origin_the_bonds_are_the_same():
    rng = np.random.default_rng(2)
    positions = rng.normal(size=(9, 3))
    turn, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    orders = infer_bonds("CCOHHHHHH", positions)
    assert np.array_equal(infer_bonds("CCOHHHHHH", positions @ turn.T), orders)


def test_positions_are_left_as_they_were():
    positions = np.random.default_rng(0).normal(size=(4, 3))
    before = positions.copy()
    infer_bonds("COHH", positions)
    assert np.array_equal(positions, before)


def test_an_element_without_a_valence_is_named():
    with pytest.raises(ValueError, match="`perceive`"):
        infer_bonds(["C", "S", "Cl"], np.zeros((3, 3)))


def test_all_molecules_of_qm9_are_right_by_their_lengths(qm9):
    symbols, positions, _ = qm9
    assert len(positions) == 48
    for molecule in positions:
        assert np.array_equal(
            infer_bonds(symbols, molecule), bond_orders(symbols, molecule)
        )


def test_all_molecules_of_qm9_have_their_graph(qm9):
    pytest.importorskip("rdkit")
    symbols, positions, smiles = qm9
    graphs = [
        graph_smiles(from_bonds(symbols, infer_bonds(symbols, molecule)))
        for molecule in positions
    ]
    assert graphs == list(smiles)


@pytest.mark.parametrize("far", [np.inf, 1e200, np.nan])
def test_positions_that_are_not_finite_are_refused(far):
    positions = np.random.default_rng(0).normal(size=(5, 3))
    positions[1] = far
    with pytest.raises(ValueError, match="finite"):
        infer_bonds("CCOHH", positions)


def test_no_atoms_have_no_bonds():
    assert infer_bonds([], np.zeros((0, 3))).shape == (0, 0)


@pytest.mark.parametrize("order", [5, -1])
def test_orders_without_a_name_are_refused(order):
    pytest.importorskip("rdkit")
    with pytest.raises(ValueError, match="order"):
        from_bonds("CC", np.array([[0, order], [order, 0]]))
