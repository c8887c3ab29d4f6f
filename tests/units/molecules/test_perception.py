import time

import numpy as np
import pytest

from equistein.molecules import bonds_of, graph_smiles, perceive

WATER = np.array([[0, 0, 0.117], [0, 0.757, -0.469], [0, -0.757, -0.469]])
METHANE = np.array([[0, 0, 0], [1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]]) * 0.63
ETHENE = np.array(
    [[0, 0, 0.66], [0, 0, -0.66]]
    + [[0, side * 0.92, end * 1.23] for end in (1, -1) for side in (1, -1)]
)
ROW = np.array([0.0, 0.0, 1.0])


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
        ("CO", ROW * [[0], [1.13]], "[C-]#[O+]"),
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
        (
            "CNHHHHH",  # CH2-NH3 where methylamine is meant
            [[0, 0, 0], [0, 0, 1.5], [0, 1, -0.4], [0, -1, -0.4]]
            + [[x, y, 1.8] for x, y in ((1, 0), (-0.5, 0.8), (-0.5, -0.8))],
            "charges",
        ),
        ("CHHHH", METHANE * 0, "no bond orders fit"),
        ("CHHHH", METHANE * 0.4, "no bond orders fit"),
        ("OHH", WATER + [[0], [np.nan], [0]], "not finite"),
        ("OHH", WATER + [[0], [0], [np.inf]], "not finite"),
        ("OHH", WATER * 1e200, "several fragments"),
    ],
)
def test_what_is_not_valid_has_a_problem(symbols, positions, problem, chem):
    seen = perceive(symbols, np.array(positions))
    assert seen.smiles is None
    assert (seen.mol is None) == (seen.problem != "several fragments")
    assert problem in seen.problem


def test_the_order_of_the_atoms_and_where_they_are_do_not_matter(chem):
    turn, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))
    order = [3, 1, 4, 0, 2, 5]
    moved = (ETHENE @ turn.T + 100)[order]
    assert perceive(["CCHHHH"[i] for i in order], moved).smiles == "C=C"


@pytest.mark.parametrize("width", [1.0, 2.0, 3.0, 4.5])
def test_a_dense_cluster_does_not_hang(width, chem):
    positions = np.random.default_rng(0).uniform(0, width, (40, 3))
    start = time.perf_counter()
    assert perceive(40 * "C", positions).smiles is None
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


@pytest.mark.parametrize(
    ("stereo", "plain"), [("C/C=C/C", "CC=CC"), ("O[C@H](F)Cl", "OC(F)Cl")]
)
def test_a_graph_has_no_stereochemistry(stereo, plain, chem):
    mol = chem.AddHs(chem.MolFromSmiles(stereo))
    assert graph_smiles(mol) == plain
    assert chem.MolToSmiles(chem.RemoveHs(mol)) == stereo  # what went in is untouched


def test_bonds_of_a_molecule_are_those_it_was_made_of(chem):
    chain = np.array([[0, 2, 0], [2, 0, 2], [0, 2, 0]])
    assert np.array_equal(bonds_of(chem.MolFromSmiles("O=C=O")), chain)
    orders = bonds_of(chem.MolFromSmiles("c1ccccc1"))  # which RDKit calls aromatic
    ring = np.roll(np.eye(6), 1, axis=0) + np.roll(np.eye(6), -1, axis=0)
    assert np.array_equal(orders > 0, ring > 0)
    assert np.array_equal(orders.sum(axis=1), [3] * 6)


def test_an_unknown_element_is_named_by_perceive(chem):
    with pytest.raises(ValueError, match="Xx"):
        perceive(["Xx"], np.zeros((1, 3)))


def embedded(chem, smiles):
    from rdkit.Chem import AllChem

    mol = chem.AddHs(chem.MolFromSmiles(smiles))
    assert AllChem.EmbedMolecule(mol, randomSeed=1) == 0
    AllChem.UFFOptimizeMolecule(mol)
    symbols = [atom.GetSymbol() for atom in mol.GetAtoms()]
    return symbols, mol.GetConformer().GetPositions()


@pytest.mark.parametrize(
    "smiles",
    """C[N+](=O)[O-] CN=[N+]=[N-] [O-][n+]1ccccc1 C[N+]#[C-] C=[N+]=[N-] CS(C)=O O=S=O
    [O-][O+]=O C[N+](C)(C)[O-] [NH3+]CC(=O)[O-] CC#[N+][O-] CC(=O)C=[N+]=[N-]
    O=[N+]([O-])c1ccc([N+](=O)[O-])cc1 CO[N+](=O)[O-] C[N+](C)(C)CC(=O)[O-]""".split(),
)
def test_neutral_molecules_with_formal_charges_are_valid(smiles, chem):
    assert perceive(*embedded(chem, smiles)).problem is None


@pytest.mark.parametrize(
    ("smiles", "charge"),
    [("[NH4+]", 1), ("CC(=O)[O-]", -1), ("[NH3+]CC[NH3+]", 2), ("[N-]=[N+]=[N-]", -1)],
)
def test_ions_are_valid_with_their_charge_alone(smiles, charge, chem):
    ion = embedded(chem, smiles)
    assert perceive(*ion, charge).problem is None
    assert perceive(*ion).problem is not None
    assert perceive(*ion, -charge).problem is not None


@pytest.mark.parametrize(
    ("damage", "most"), [("remove", 0), ("remove heavy", 3), ("move", 34)]
)
def test_charges_let_no_broken_molecule_pass(damage, most, qm9, chem):
    """As many of 96 are valid as if all formal charges were refused: 0, 3 and 34."""
    symbols, positions, _ = qm9
    rng, num = np.random.default_rng(0), 0
    for molecule in np.concatenate([positions, positions]):
        names, at = list(symbols), np.array(molecule, float)
        heavy = [i for i, name in enumerate(names) if name != "H"]
        atom = rng.choice(heavy if damage == "remove heavy" else len(names))
        if damage == "move":
            step = rng.normal(size=3)
            at[atom] += 0.5 * step / np.linalg.norm(step)
        else:
            names.pop(atom)
            at = np.delete(at, atom, axis=0)
        num += perceive(names, at).problem is None
    assert num <= most
