import numpy as np
import pytest

from equistein.molecules import graph_smiles, infer_bonds

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


BONDS = {  # what a rule decides: symbols, positions and the bonds
    "the tree starts at the heavy atom nearest the origin": (
        "OFF", [0, 1.0, 1.8], {(0, 1): 1, (0, 2): 1}
    ),
    "and the oxygen is left alone": ("OFF", [-1.0, 0, 0.8], {(1, 2): 1}),
    "a hydrogen at the origin starts none": (
        "HOFF", [0, 0.1, 1.1, 1.9], {(1, 2): 1, (1, 3): 1}
    ),
    # The last is bonded to the third, which is further from the origin than the first.
    "the tree takes the atom nearest to any atom in it": (
        "OFOF", [0, -0.9, 1.4, 2.4], {(0, 1): 1, (0, 2): 1, (2, 3): 1}
    ),
    # All are nearest to the first oxygen, which has two bonds before the last comes.
    "a full valence takes no more": (
        "OFFF", [0, 1.0, (0, 1.1), (0, 0, 1.2)], {(0, 1): 1, (0, 2): 1}
    ),
    "but the next atom does": (
        "OOFF", [0, (0, 1.1), -1.0, (1.2, 0)], {(0, 2): 1, (0, 1): 1, (1, 3): 1}
    ),
    # Both are nearest to the first oxygen; the one that is further away gets it.
    "the furthest hydrogen is bonded first": (
        "OOHH", [0, 1.4, (0, 0.9), (0, -1.0)], {(0, 1): 1, (0, 3): 1, (1, 2): 1}
    ),
    # 1.0 goes first; then the hydrogen at .95 has to go to the other oxygen, and is
    # further from it than the last hydrogen, for which no valence is left.
    "distances of hydrogens are computed again after each": (
        "OOHHH", [0, 1.4, (0, 1.0), (0, -0.95), (1.4, 0.97)],
        {(0, 1): 1, (0, 2): 1, (1, 3): 1},
    ),
    "a hydrogen may be far away": (
        "OHH", [0, 500.0, (0, 1.0)], {(0, 1): 1, (0, 2): 1}
    ),
    "hydrogens come before double bonds": (
        "CCHHHH", [0, 1.33, (-0.6, 0.9), (-0.6, -0.9), (1.9, 0.9), (1.9, -0.9)],
        {(0, 1): 2, (0, 2): 1, (0, 3): 1, (1, 4): 1, (1, 5): 1},
    ),
    "and triple ones": (
        "CCHH", [0, 1.2, -1.06, 2.26], {(0, 1): 3, (0, 2): 1, (1, 3): 1}
    ),
    "carbon dioxide": ("OCO", [-1.16, 0, 1.16], {(0, 1): 2, (1, 2): 2}),
    "nitrogen": ("NN", [0, 1.1], {(0, 1): 3}),
    "fluorine": ("FF", [0, 1.4], {(0, 1): 1}),
    "carbon": ("C", [0], {}),
    "hydrogens alone": ("HH", [0, 0.74], {}),
    "one hydrogen too few": ("OH", [0, 0.97], {(0, 1): 1}),
    "one too many": ("FHH", [0, 0.9, -1.0], {(0, 2): 1}),
}  # fmt: skip


@pytest.mark.parametrize(("symbols", "at", "expected"), BONDS.values(), ids=BONDS)
def test_bonds_follow_the_rules(symbols, at, expected):
    assert bonds(symbols, *at) == expected


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


def test_an_element_without_a_valence_is_named():
    with pytest.raises(ValueError, match="`perceive`"):
        infer_bonds(["C", "S", "Cl"], np.zeros((3, 3)))


def test_all_molecules_of_qm9_have_their_graph(qm9):
    chem = pytest.importorskip("rdkit.Chem")
    symbols, positions, smiles = qm9
    for molecule, expected in zip(positions, smiles, strict=True):
        mol, orders = chem.RWMol(), infer_bonds(symbols, molecule)
        for symbol in symbols:
            mol.AddAtom(chem.Atom(symbol))
        for i, j in np.argwhere(np.triu(orders)).tolist():
            mol.AddBond(i, j, chem.BondType.values[int(orders[i, j])])
        chem.SanitizeMol(mol)
        assert graph_smiles(mol) == expected


@pytest.mark.parametrize("far", [np.inf, 1e200, np.nan])
def test_positions_that_are_not_finite_are_refused(far):
    positions = np.random.default_rng(0).normal(size=(5, 3))
    positions[1] = far
    with pytest.raises(ValueError, match="finite"):
        infer_bonds("CCOHH", positions)
