"""Automorphisms of bonds, against counts by hand and by RDKit."""

import pathlib

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import equistein as es
from equistein.groups import Molecule

PDB = pathlib.Path(__file__).parents[3] / "benchmarks" / "alanine-dipeptide.pdb"
METHANE = ([(0, i) for i in range(1, 5)], [6, 1, 1, 1, 1])
RING = [(i, (i + 1) % 6) for i in range(6)]
BENZENE = (RING + [(i, i + 6) for i in range(6)], [6] * 6 + [1] * 6)
TRIANGLES = [(0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (3, 5)]
CUBE = [(i, i ^ bit) for i in range(8) for bit in (1, 2, 4) if i < i ^ bit]
METHYLS = [(i, 2 + 3 * i + j) for i in range(1, 5) for j in range(3)]
NEOPENTANE = ([*METHANE[0], *METHYLS], [6] * 5 + [1] * 12)


def waters(num):
    return [(3 * i, 3 * i + k) for i in range(num) for k in (1, 2)], [8, 1, 1] * num


def is_automorphism(group, order):
    bonds, numbers = set(group.bonds), np.array(group.atomic_numbers)
    moved = {tuple(sorted(order[list(bond)].tolist())) for bond in bonds}
    return moved == bonds and np.array_equal(numbers[order], numbers)


@pytest.mark.parametrize(
    ("topology", "num", "num_kinds"),
    [
        (METHANE, 24, 2),
        (BENZENE, 12, 2),
        (NEOPENTANE, 24 * 6**4, 3),
        (waters(2), 2 * 2**2, 2),
        ((CUBE, [6] * 8), 48, 1),
        ((TRIANGLES, [6] * 6), 72, 1),
        # One triangle, one ring: neighbors alone do not tell their atoms apart.
        ((RING + [(i + 6, j + 6) for i, j in TRIANGLES[:3]], [6] * 9), 12 * 6, 2),
        (([(0, 1)], [1, 9]), 1, 2),
        (([(0, 1)], [1, 1, 18]), 2, 2),
    ],
)
def test_automorphisms_are_all_that_there_are(topology, num, num_kinds):
    group = Molecule(topology)
    assert group.num_permutations == num
    assert len(set(group.species)) == num_kinds
    orders = group.permutations()
    assert np.array_equal(orders[0], np.arange(len(group.species)))
    assert len(np.unique(orders, axis=0)) == num
    assert all(is_automorphism(group, order) for order in orders[:: 1 + num // 500])


def test_many_molecules_are_counted_drawn_and_sorted(key):
    group = Molecule(waters(30))
    assert group.num_permutations == 2**30 * np.prod(np.arange(1, 31, dtype=object))
    drawn = group.sample(key, 4)
    assert all(is_automorphism(group, order) for order in np.asarray(drawn.permutation))
    point = group.project(jr.normal(key, (90, 3)))
    moved = jax.jit(jax.vmap(group.act, (0, None)))(drawn, point)
    same = jax.jit(jax.vmap(group.canonicalize))(jnp.concatenate([point[None], moved]))
    assert np.allclose(same, same[:1], atol=1e-9)
    with pytest.raises(ValueError, match="automorphisms would need"):
        group.permutations()


def test_draws_are_uniform(key):
    group = Molecule(waters(2))
    drawn = np.asarray(group.sample(key, 4_000).permutation)
    _, counts = np.unique(drawn, axis=0, return_counts=True)
    assert len(counts) == 8
    assert np.sum((counts - 500) ** 2 / 500) < 24.3  # chi squared of 7, p = .001


@pytest.mark.parametrize("smiles", ["CC", "c1ccccc1C", "CC(=O)[O-]", "C[C@H](F)Cl"])
def test_molecules_of_rdkit(smiles):
    Chem = pytest.importorskip("rdkit.Chem", reason="needs RDKit")
    molecule = Chem.AddHs(Chem.MolFromSmiles(smiles))
    numbers = [atom.GetAtomicNum() for atom in molecule.GetAtoms()]
    group = Molecule(molecule)
    pattern = Chem.RWMol()  # without bond orders, charges and hands
    for number in numbers:
        pattern.AddAtom(Chem.Atom(number))
    for i, j in group.bonds:
        pattern.AddBond(i, j, Chem.BondType.SINGLE)
    matches = pattern.GetSubstructMatches(pattern, uniquify=False, maxMatches=10**5)
    assert group.atomic_numbers == tuple(numbers)
    assert {*map(tuple, group.permutations().tolist())} == {*map(tuple, matches)}


@pytest.mark.parametrize("package", ["mdtraj", "openmm.app"])
def test_topologies_of_a_file(package):
    module = pytest.importorskip(package, reason=f"needs {package}")
    read = module.load_topology if package == "mdtraj" else module.PDBFile
    found = read(str(PDB))
    topology = found if package == "mdtraj" else found.topology
    group = Molecule(topology)
    assert group.num_permutations == 6**3  # three methyl groups
    assert len(group.bonds) == 21
    group.check_shape((22, 3))
    with pytest.raises(ValueError, match="22 particles"):
        group.check_shape((10, 3))


def test_a_molecule_may_be_chiral(key):
    group, point = Molecule(METHANE), jr.normal(key, (5, 3))
    mirrored = point.at[:, 0].multiply(-1)
    assert not np.allclose(group.canonicalize(point), group.canonicalize(mirrored))
    same = Molecule(METHANE, reflections=True)
    assert np.allclose(same.canonicalize(point), same.canonicalize(mirrored))
    assert same.without_reflections() == group


def test_a_kernel_averages_over_the_automorphisms(key):
    group = Molecule(waters(2))
    kernel = es.kernels.Equivariant(es.kernels.RBF(1.0), group)
    x, y = (group.project(point) for point in jr.normal(key, (2, 6, 3)))
    elements = group.sample(jr.key(1), 2)
    g, h = (jax.tree.map(lambda leaf, i=i: leaf[i], elements) for i in range(2))
    of_kernel, one_act = eqx.filter_jit(kernel.matrix), jax.jit(group.act)
    matrix = lambda x, y: np.asarray(of_kernel(x, y)).reshape(18, 18)
    every_act = jax.jit(jax.vmap(group.act, (None, 0)))
    act = lambda g: np.asarray(every_act(g, jnp.eye(18).reshape(18, 6, 3)))
    left, right = (act(each).reshape(18, 18).T for each in (g, h))
    expected = left @ matrix(x, y) @ right.T
    assert np.allclose(matrix(one_act(g, x), one_act(h, y)), expected, atol=1e-9)
    # Without the automorphisms the kernel is another one.
    distinct = es.kernels.Equivariant(
        es.kernels.RBF(1.0), es.groups.PointCloud(range(6), 3, reflections=False)
    )
    assert not np.allclose(
        matrix(x, y), np.asarray(eqx.filter_jit(distinct.matrix)(x, y)).reshape(18, 18)
    )


@pytest.mark.parametrize(
    ("topology", "words"),
    [
        ("water.pdb", "`topology`.* but got str"),
        (([(0, 2)], [1, 1]), r"`topology` with bonds of two of its 2 atoms"),
        (([(0, 0)], [1, 1]), "numbered from 0"),
        (([], [18, 18]), "it has none. Read it"),
        (([(0, 1)], [8, 1, 1]), "atom 2, a hydrogen, has none"),
    ],
)
def test_what_is_no_topology_is_refused(topology, words):
    with pytest.raises(ValueError, match=words):
        Molecule(topology)
