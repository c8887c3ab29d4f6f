"""Trajectories in the formats that mdtraj reads."""

import dataclasses
import importlib.util
import pathlib

import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from equistein.data import DataError, read_frames, write_frames
from equistein.groups import check_invariance, Molecule, PointCloud
from equistein.models import (
    default_network,
    DenoisingSettings,
    for_dataset,
    LinearSettings,
    Problem,
    read_dataset,
)
from equistein.molecules import (
    is_molecules,
    TRAJECTORIES,
    XYZError,
)

mdtraj = pytest.importorskip("mdtraj", reason="needs mdtraj, pip install mdtraj")
PDB = pathlib.Path(__file__).parents[3] / "benchmarks" / "alanine-dipeptide.pdb"
NUM = 50
needs_tables = pytest.mark.skipif(
    importlib.util.find_spec("tables") is None, reason="needs PyTables for .h5"
)
every_ending = pytest.mark.parametrize(
    "ending",
    [*(e for e in TRAJECTORIES if e != ".h5"), pytest.param(".h5", marks=needs_tables)],
)


@pytest.fixture(scope="module")
def frames():
    """Frames of alanine dipeptide, in nm as mdtraj has them."""
    whole = mdtraj.load(str(PDB))
    noise = np.random.default_rng(0).normal(size=(NUM, whole.n_atoms, 3))
    positions = whole.xyz + 0.005 * noise
    return mdtraj.Trajectory(positions.astype(np.float32), whole.topology)


def distances(positions):
    return np.linalg.norm(positions[:, :, None] - positions[:, None], axis=-1)


@every_ending
def test_frames_are_read_in_angstrom(ending, frames, tmp_path):
    path = tmp_path / f"frames{ending}"
    frames.save(str(path))
    assert is_molecules(path)
    options = {} if ending == ".h5" else {"topology": str(PDB)}
    found = read_frames(path, **options)
    assert len(found) == NUM
    assert found[0].symbols[:5] == ("H", "C", "H", "H", "C")
    close = np.array([each.positions for each in found])
    assert np.allclose(close, 10 * frames.xyz, atol=0.011)  # .xtc rounds


@every_ending
@pytest.mark.parametrize("topology", [None, PDB])
def test_frames_are_written(ending, topology, frames, tmp_path):
    path = tmp_path / f"frames{ending}"
    symbols = [atom.element.symbol for atom in frames.topology.atoms]
    write_frames(path, symbols, 10 * frames.xyz[:5], topology=topology)
    top = {} if ending == ".h5" else {"top": str(PDB)}
    found = mdtraj.load(str(path), **top)
    assert np.allclose(found.xyz, frames.xyz[:5], atol=0.0011)
    if ending == ".h5":
        assert found.topology.n_bonds == (21 if topology else 0)
        assert found.topology.n_residues == (3 if topology else 1)


def test_a_cell_of_any_orientation_is_written(tmp_path):
    path, species = tmp_path / "frames.pdb", ("Ar",) * 4
    cell = np.array([[0.0, 20, 0], [25, 3, 0], [2, 1, 30]])  # in Angstrom
    at = np.random.default_rng(0).uniform(size=(5, 4, 3)) @ cell
    write_frames(path, species, at, cell=cell)
    found = mdtraj.load(str(path))
    pairs = np.array([(i, j) for i in range(4) for j in range(i)])
    gaps = (at[:, pairs[:, 0]] - at[:, pairs[:, 1]])[:, :, None]
    images = np.array(list(np.ndindex(5, 5, 5))) - 2
    nearest = np.linalg.norm(gaps + images @ cell, axis=-1).min(axis=-1)
    assert np.allclose(10 * mdtraj.compute_distances(found, pairs), nearest, atol=0.02)
    hands = [np.sign(np.linalg.det(x[:, 1:] - x[:, :1])) for x in (at, found.xyz)]
    assert np.array_equal(*hands)  # the cell is left-handed, and nothing is mirrored


def test_frames_of_other_atoms_are_not_written(frames, tmp_path):
    symbols = [atom.element.symbol for atom in frames.topology.atoms]
    for species, at in ((symbols[1:], frames.xyz[:, 1:]), (symbols, frames.xyz[:, 1:])):
        with pytest.raises(DataError, match="`topology`"):
            write_frames(tmp_path / "x.xtc", species, at, topology=PDB)


def test_stride_and_chosen_atoms(frames, tmp_path):
    path = tmp_path / "frames.dcd"
    frames.save(str(path))
    heavy = "not element H"
    found = read_frames(path, topology=str(PDB), stride=7, atoms=heavy)
    assert len(found) == len(range(0, NUM, 7))
    assert "H" not in found[0].symbols
    atoms = frames.topology.select(heavy)
    assert np.allclose(found[1].positions, 10 * frames.xyz[7, atoms], atol=1e-4)
    of_pdb = read_frames(PDB, atoms=heavy)
    assert of_pdb[0].symbols == found[0].symbols


def test_molecules_are_made_whole(frames, tmp_path):
    path, side = tmp_path / "frames.xtc", 2.0
    cut = mdtraj.Trajectory(frames.xyz % side, frames.topology)
    shift = 0.5 * side - frames.xyz[:, :1]  # the cell's wall goes through the molecule
    cut.xyz = (frames.xyz + shift + side / 2) % side
    cut.unitcell_vectors = np.broadcast_to(side * np.eye(3), (NUM, 3, 3))
    assert np.max(distances(cut.xyz)) > 1.5
    cut.save(str(path))
    found = read_frames(path, topology=str(PDB))
    close = np.array([each.positions for each in found])
    assert np.allclose(distances(close), 10 * distances(frames.xyz), atol=0.05)
    write_frames(tmp_path / "top.pdb", found[0].symbols, found[0].positions[None])
    with pytest.raises(XYZError, match="no bonds"):
        read_frames(path, topology=str(tmp_path / "top.pdb"))


def two_waters():
    topology = mdtraj.Topology()
    chain, elements = topology.add_chain(), mdtraj.element
    for _ in range(2):
        residue = topology.add_residue("HOH", chain)
        oxygen = topology.add_atom("O", elements.oxygen, residue)
        for name in ("H1", "H2"):
            hydrogen = topology.add_atom(name, elements.hydrogen, residue)
            topology.add_bond(oxygen, hydrogen)
    one = np.array([[0.0, 0, 0], [0.0957, 0, 0], [-0.024, 0.0927, 0]])
    at = np.concatenate([one, one + [0, 0, 0.3]])
    return mdtraj.Trajectory(np.repeat(at[None], 9, 0).astype("f4"), topology)


@needs_tables
def test_several_molecules_in_a_cell_are_refused(tmp_path):
    path, top = tmp_path / "frames.xtc", str(tmp_path / "top.h5")
    waters = two_waters()
    waters[0].save(top)
    waters.unitcell_vectors = np.broadcast_to(np.eye(3), (9, 3, 3))
    waters.save(str(path))
    with pytest.raises(XYZError, match="2 molecules"):
        read_frames(path, topology=top)
    assert len(read_frames(path, topology=top, atoms="resid 1")) == 9
    waters.unitcell_lengths = np.zeros((9, 3))  # no cell
    waters.save(str(tmp_path / "frames.nc"))
    assert len(read_frames(tmp_path / "frames.nc", topology=top)) == 9


@needs_tables
def test_bonds_that_are_missing_are_named(frames, tmp_path):
    top, path = frames.topology.copy(), tmp_path / "frames.xtc"
    residue = top.add_residue("LIG", top.add_chain())
    for i in range(2):
        top.add_atom(f"C{i}", mdtraj.element.carbon, residue)
    apart = np.broadcast_to([[2.0, 0, 0], [2.14, 0, 0]], (NUM, 2, 3))
    positions = np.concatenate([frames.xyz, apart], axis=1).astype("f4")
    more = mdtraj.Trajectory(positions, top)
    more[0].save(str(tmp_path / "top.h5"))
    more.save(str(path))
    with pytest.raises(DataError, match="no bond of atom 22"):
        read_frames(path, topology=str(tmp_path / "top.h5"))
    assert len(read_frames(path, topology=str(tmp_path / "top.h5"), atoms="protein"))


def test_frames_of_zeros_are_refused(frames, tmp_path):
    zeros = mdtraj.Trajectory(frames.xyz.copy(), frames.topology)
    zeros.xyz[-3:, 7:] = 0  # as of a file that is cut
    zeros.save(str(tmp_path / "frames.dcd"))
    with pytest.raises(XYZError, match="frame 47 has atoms 7 and 8"):
        read_frames(tmp_path / "frames.dcd", topology=str(PDB))


def test_pieces_are_joined(frames, tmp_path, monkeypatch):
    monkeypatch.setattr("equistein.data._trajectories._CHUNK", 8)
    path = tmp_path / "frames.dcd"
    frames.save(str(path))
    found = read_frames(path, topology=str(PDB), stride=3)
    assert len(found) == len(range(0, NUM, 3))
    assert np.allclose(found[-1].positions, 10 * frames.xyz[48], atol=1e-4)


def test_what_is_wrong_is_said(frames, tmp_path):
    path, small = tmp_path / "frames.dcd", tmp_path / "small.pdb"
    frames.save(str(path))
    frames[0].atom_slice(range(5)).save(str(small))
    with pytest.raises(XYZError, match="--topology"):
        read_frames(path)
    other = mdtraj.Trajectory(frames.xyz[:, ::-1], frames.topology)
    other.save(str(tmp_path / "other.dcd"))
    with pytest.raises(DataError, match="Angstrom long: reorder the topology"):
        read_frames(tmp_path / "other.dcd", topology=str(PDB))
    assert len(read_frames(path, topology=str(PDB))) == len(frames)
    with pytest.raises(XYZError, match=r"small\.pdb"):
        read_frames(path, topology=str(small))
    with pytest.raises(XYZError, match="proteins"):
        read_frames(path, topology=str(PDB), atoms="proteins of gold")
    for stride in (0, -1, 2.5):
        with pytest.raises(ValueError, match="`stride`"):
            read_frames(path, topology=str(PDB), stride=stride)
    with pytest.raises(XYZError, match="does not fit"):
        read_frames(tmp_path / "none.xtc", topology=str(PDB))
    (tmp_path / "a.xyz").write_text("2\nenergy=-1\nH 0 0 0\nH 0 0 0.7\n")
    with pytest.raises(XYZError, match="leave out --topology"):
        read_frames(tmp_path / "a.xyz", topology=str(PDB))  # its energy would be lost
    path.write_bytes(b"no trajectory")
    with pytest.raises(XYZError, match="does not fit"):
        read_frames(path, topology=str(PDB))


def test_a_fit_reads_a_trajectory(frames, tmp_path):
    path = tmp_path / "frames.dcd"
    frames.save(str(path))
    problem = Problem(
        group="point-cloud", topology=str(PDB), stride=2, atoms="not element H"
    )
    dataset = read_dataset(path, problem)
    assert dataset.points.shape == (25, 10, 3)
    assert dataset.group.num_permutations == 1  # heavy atoms, none of them alike
    assert "The topology has 9 bonds." in dataset.notes


def test_a_fit_has_the_symmetry_of_the_bonds(frames, tmp_path):
    path = tmp_path / "frames.dcd"
    frames.save(str(path))
    dataset = read_dataset(path, Problem(group="point-cloud", topology=str(PDB)))
    assert dataset.group == Molecule(frames.topology)
    assert default_network(dataset.group, (22, 3), None) == "graph"
    dataset = dataclasses.replace(dataset, points=jnp.asarray(dataset.points, float))
    train = dataset.train().points
    graph = for_dataset(jr.key(0), dataset, DenoisingSettings(width=8)).energy
    assert graph.group((22, 3)).contains(dataset.group)
    check_invariance(graph.log_density, dataset.group, train[:2])
    linear = for_dataset(jr.key(0), dataset, LinearSettings(num_gaussians=2)).energy
    assert linear.group((22, 3)) == dataset.group
    features = linear.features
    check_invariance(features, dataset.group, train[:2])
    mirrored = train[0] * jnp.array([[1.0, 1.0, -1.0]])
    assert not np.allclose(features(mirrored), features(train[0]), atol=1e-3)


def test_atoms_without_bonds_count_as_alike(tmp_path):
    topology = mdtraj.Topology()
    residue = topology.add_residue("AR", topology.add_chain())
    for _ in range(3):
        topology.add_atom("AR", mdtraj.element.argon, residue)
    positions = np.random.default_rng(0).normal(size=(9, 3, 3)).astype(np.float32)
    path = tmp_path / "argon.pdb"
    mdtraj.Trajectory(positions, topology).save(str(path))
    problem = Problem(group="point-cloud", topology=str(path))
    dataset = read_dataset(path, problem)
    assert dataset.group == PointCloud("AAA", 3)
    assert any("no bonds" in note for note in dataset.notes)
