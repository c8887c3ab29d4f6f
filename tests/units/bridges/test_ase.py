import dataclasses
import sys

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import equistein as es

pytestmark = pytest.mark.slow  # ASE is installed for these


@pytest.fixture
def copper():
    cluster = pytest.importorskip("ase.cluster")
    from ase.calculators.emt import EMT

    atoms = cluster.Icosahedron("Cu", 2)
    atoms.calc = EMT()
    return atoms


def test_a_calculator_is_a_density_with_its_symmetry(copper, key):
    density = es.from_ase(copper, temperature=600.0, container=6.0)
    points = copper.positions + 0.1 * np.asarray(jr.normal(key, (3, 13, 3)))
    energies = density.energies(points)
    for positions, energy in zip(points, energies, strict=True):
        copper.positions = positions
        assert energy == pytest.approx(copper.get_potential_energy())
    es.check_invariance(density, density.group, jnp.asarray(points))
    score = jax.grad(density)(jnp.asarray(points[0]))
    copper.positions = points[0]
    assert np.allclose(score, copper.get_forces() / (8.617333262e-5 * 600))


def test_samples_become_atoms_that_ase_writes(copper, tmp_path):
    from ase.io import read, write

    atoms = es.to_ase(["Cu"] * 13, np.stack([copper.positions] * 2))
    write(tmp_path / "two.traj", atoms)
    again = read(tmp_path / "two.traj", index=":")
    assert [each.get_chemical_formula() for each in again] == ["Cu13"] * 2
    assert np.allclose(again[1].positions, copper.positions)
    (one,) = es.to_ase([8, 1], np.zeros((1, 2, 3)))
    assert one.get_chemical_formula() == "HO"


@pytest.fixture
def crystal():
    build, emt = (pytest.importorskip(f"ase.{n}") for n in ("build", "calculators.emt"))
    atoms = build.bulk("Cu", cubic=True) * (2, 2, 2)
    atoms.calc = emt.EMT()
    return atoms


def test_atoms_in_a_cell_have_its_symmetry(crystal, tmp_path):
    density = es.from_ase(crystal, temperature=300.0)
    shaken = crystal.positions + 0.1 * np.random.default_rng(0).normal(size=(2, 32, 3))
    points = jnp.asarray(shaken, float)
    assert density.group == es.groups.PeriodicCloud((29,) * 32, crystal.cell[:])
    assert len(density.group.rotations()) == 48
    few = es.groups.PeriodicCloud(
        range(32), crystal.cell[:]
    )  # fewer elements are tried
    es.check_invariance(density, density.group, points[:1])
    es.check_invariance(density, few, points[:1])
    from ase.io import read, write

    path = tmp_path / "crystal.extxyz"
    write(path, es.to_ase([29] * 32, shaken, crystal.cell[:]))
    (atoms, _) = read(path, index=":")
    assert np.all(atoms.pbc)
    found = es.molecules.read_molecules(path)
    assert np.allclose(found[1].cell, crystal.cell[:])
    es.molecules.write_xyz(tmp_path / "a.xyz", ["Cu"] * 32, shaken, cell=found[0].cell)
    again = es.molecules.read_molecules(tmp_path / "a.xyz")
    assert np.allclose(again[0].cell, found[0].cell)
    assert np.allclose(again[1].positions, shaken[1], atol=1e-7)


def test_a_learned_energy_of_a_cell_is_a_calculator_there(crystal):
    shaken = crystal.positions + 0.1 * np.random.default_rng(1).normal(size=(60, 32, 3))
    cell = np.array(crystal.cell[:])
    features = es.features.PairBasis(
        [0] * 32, shaken, num_gaussians=4, cutoff=3.6, cell=cell
    )
    fitted = es.fit_linear(
        0, es.energies.LinearEnergy(features), shaken, progress=False
    )
    about = {"atomic_numbers": [29] * 32, "kelvin": 300.0, "cell": cell.tolist()}
    crystal.calc = dataclasses.replace(fitted, about=about).calculator()
    before, forces = crystal.get_potential_energy(), crystal.get_forces()
    assert np.allclose(forces, 0, atol=1e-3)  # of a perfect crystal
    crystal.positions += 7.0
    assert crystal.get_potential_energy() == pytest.approx(before, rel=1e-5)
    crystal.pbc = False
    with pytest.raises(ValueError, match="in the cell .* pbc True"):
        crystal.get_potential_energy()


@pytest.mark.slow
def test_a_crystal_has_the_energies_of_langevin_dynamics(crystal):
    from ase import units
    from ase.md.langevin import Langevin

    rng, energies = np.random.default_rng(0), []
    start = crystal.positions + 0.05 * rng.normal(size=(8, 32, 3))
    own = crystal.copy()
    own.calc = crystal.calc
    own.set_momenta(
        rng.normal(size=(32, 3)) * (own.get_masses()[:, None] * 0.026) ** 0.5
    )
    dynamics = Langevin(
        own, 5 * units.fs, temperature_K=300, friction=0.02 / units.fs,
        fixcm=False, rng=rng,
    )  # fmt: skip
    dynamics.run(300)
    for _ in range(250):
        dynamics.run(10)
        energies.append(own.get_potential_energy())
    density = es.from_ase(crystal, temperature=300.0)
    chains = es.HMC(0.03, num_leapfrogs=6, num_adapt=50)
    samples = es.run(
        0, chains, density, jnp.asarray(start, float), num_steps=130, record_every=4,
        keep=8,
    )  # fmt: skip
    kept = np.asarray(samples.history["particles"])[13:]
    drawn = density.energies(kept.reshape(-1, 32, 3)).reshape(-1, 8)
    blocks = [np.mean(part, axis=0) for part in np.array_split(drawn, 5)]
    unit = 8.617333262e-5 * 300
    ours, theirs = drawn.ravel() / unit, np.array(energies) / unit
    error = (np.var(blocks) / np.size(blocks)) ** 0.5 / unit
    pieces = [np.mean(part) for part in np.array_split(theirs, 20)]
    joint = np.hypot(error, np.std(pieces) / 19**0.5)
    assert abs(ours.mean() - theirs.mean()) < 3 * joint
    assert joint < 1.5  # of 46.5 kT
    assert abs(ours.std() - theirs.std()) < 0.15 * theirs.std()


def test_atoms_without_a_calculator_or_half_in_a_cell_are_refused(copper):
    bare = copper.copy()
    with pytest.raises(ValueError, match="a calculator"):
        es.from_ase(bare, temperature=600.0)
    for half in (True, (True, True, False)):  # this copper has no cell
        copper.pbc = half
        with pytest.raises(ValueError, match="periodic along all"):
            es.from_ase(copper, temperature=600.0)
    with pytest.raises(ValueError, match="`positions`"):
        es.to_ase(["Cu"], np.zeros((2, 13, 3)))


def test_without_ase_the_command_that_installs_it_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "ase", None)
    with pytest.raises(ImportError, match="equistein.ase"):
        es.to_ase(["H"], np.zeros((1, 1, 3)))


# ------------------------------------------------------------------ its files


@pytest.fixture
def frames(copper):
    """Three moved clusters, the first with its energy and forces."""
    moved = []
    for index in range(3):
        atoms = copper.copy()
        atoms.rattle(0.05, seed=index)
        moved.append(atoms)
    copper.positions = moved[0].positions
    copper.get_forces()
    return [copper, *moved[1:]]


@pytest.mark.parametrize("name", ["a.traj", "a.db", "a.extxyz", "a.xyz.gz"])
def test_files_of_ase_are_molecules(name, frames, tmp_path):
    from ase.io import write

    write(tmp_path / name, frames)
    assert es.molecules.is_molecules(tmp_path / name)
    found = es.molecules.read_molecules(tmp_path / name)
    assert [each.symbols for each in found] == [("Cu",) * 13] * 3
    for each, atoms in zip(found, frames, strict=True):
        assert np.allclose(each.positions, atoms.positions, atol=1e-7)
    assert found[0].energy == pytest.approx(frames[0].get_potential_energy())
    assert np.allclose(found[0].forces, frames[0].get_forces(), atol=1e-7)
    assert found[1].energy is None


@pytest.mark.parametrize("name", ["a.traj", "a.db", "a.xyz.gz", "a.pdb"])
def test_damaged_files_are_told_of(name, tmp_path):
    pytest.importorskip("ase")
    (tmp_path / name).write_bytes(b"\x00\xff nothing of the kind" * 9)
    with pytest.raises(es.molecules.XYZError, match=name):
        es.molecules.read_molecules(tmp_path / name)


def test_a_crystal_and_what_unpacks_to_too_much_are_refused(
    frames, tmp_path, monkeypatch
):
    from ase.io import write

    write(tmp_path / "many.xyz.gz", frames)
    packed = (tmp_path / "many.xyz.gz").stat().st_size
    monkeypatch.setenv("EQUISTEIN_MAX_BYTES", str(3 * packed))
    with pytest.raises(es.molecules.XYZError, match="set EQUISTEIN_MAX_BYTES to"):
        es.molecules.read_molecules(tmp_path / "many.xyz.gz")
    frames[1].pbc = True
    with pytest.raises(es.molecules.XYZError, match="periodic"):
        es.molecules.from_atoms(frames)


def test_fixed_atoms_are_refused_and_cut_trajectories_named(frames, tmp_path):
    from ase.constraints import FixAtoms
    from ase.io import write

    write(tmp_path / "a.traj", frames)
    whole = (tmp_path / "a.traj").read_bytes()
    (tmp_path / "a.traj").write_bytes(whole[:-600])
    with pytest.raises(es.molecules.XYZError, match="frame 2 is cut"):
        es.molecules.read_molecules(tmp_path / "a.traj")
    found = es.molecules.read_molecules(tmp_path / "a.traj", skip_incomplete=True)
    assert len(found) == 2
    assert "frame 2 is cut" in found.notes[0]
    frames[1].info["REF_energy"] = -2.0
    assert es.molecules.from_atoms(frames[1:2])[0].energy == -2.0
    frames[1].set_constraint(FixAtoms([]))
    assert len(es.molecules.from_atoms(frames[1:])) == 2
    frames[1].set_constraint(FixAtoms([0]))
    with pytest.raises(es.molecules.XYZError, match="frame 0, FixAtoms"):
        es.molecules.from_atoms(frames[1:])
    frames[1].calc = frames[0].calc
    with pytest.raises(ValueError, match="`atoms` must be free of FixAtoms"):
        es.from_ase(frames[1], temperature=300.0)


def test_keys_and_data_of_a_database_are_read(frames, tmp_path):
    from ase.db import connect

    with connect(tmp_path / "a.db") as rows:
        for atoms in frames[1:]:
            data = {"dft_forces": atoms.positions}
            # ASE keeps no `charge` but that of its own, of the initial charges.
            rows.write(atoms, {"dft_energy": -2.0, "total_charge": 1}, data=data)
    found = es.molecules.read_molecules(tmp_path / "a.db")
    assert [(each.energy, each.charge) for each in found] == [(-2.0, 1)] * 2
    assert np.allclose(found[1].forces, frames[2].positions)
    units = {"dft_energy": "kcal/mol", "dft_forces": "kcal/mol/Ang"}  # of SchNetPack
    rows.metadata = {"_distance_unit": "nm", "_property_unit_dict": units}
    found = es.molecules.read_molecules(tmp_path / "a.db")
    assert found[1].energy == pytest.approx(-2 * 0.0433641)
    assert np.allclose(found[1].forces, 0.0433641 * frames[2].positions)
    assert np.allclose(found[1].positions, 10 * frames[2].positions)


# ------------------------------------------------------------- a learned energy

SPRINGS = np.array([50.0, 50.0, 14.0])  # eV / Angstrom^2, of O-H, O-H and H-H
LENGTHS = np.array([0.96, 0.96, 1.52])
KT = es.molecules.BOLTZMANN * 300


def spring_energy(x):
    pairs = [x[i] - x[j] for i, j in ((0, 1), (0, 2), (1, 2))]
    lengths = jnp.sqrt(jnp.sum(jnp.stack(pairs) ** 2, axis=-1))
    return 0.5 * jnp.sum(SPRINGS * (lengths - LENGTHS) ** 2)


def mean_energy(frames):
    return float(jnp.mean(jax.vmap(spring_energy)(jnp.asarray(frames)))) / KT


def water_frames(num, rng):
    """Exact samples of harmonic water: each length from a normal times its measure."""
    widths = np.sqrt(KT / SPRINGS)
    lengths = LENGTHS + widths * rng.normal(size=(8 * num, 3))
    kept = rng.random(8 * num) < np.prod(lengths / (LENGTHS + 5 * widths), axis=1)
    a, b, c = lengths[kept][:num].T
    along = (a**2 - b**2 + c**2) / (2 * c)
    zero = np.zeros_like(a)
    oxygen = np.stack([along, np.sqrt(a**2 - along**2), zero], axis=1)
    second = np.stack([c, zero, zero], axis=1)
    return np.stack([oxygen, 0 * second, second], axis=1)


def test_langevin_dynamics_of_a_learned_energy_has_the_energies_of_the_data():
    ase = pytest.importorskip("ase")
    from ase import units
    from ase.md.langevin import Langevin

    rng = np.random.default_rng(0)
    points = jnp.asarray(water_frames(1_000, rng))
    assert mean_energy(points) == pytest.approx(1.5, abs=0.1)
    model = es.models.for_data(
        jr.key(0), es.groups.PointCloud("OHH", 3), points, atomic_numbers=[8, 1, 1],
        settings=es.models.LinearSettings(),
    )  # fmt: skip
    forces = -np.asarray(jax.vmap(jax.grad(spring_energy))(points)) / KT
    fitted = dataclasses.replace(model, forces=forces).fit(0, points)
    with pytest.raises(ValueError, match="elements and the temperature"):
        fitted.calculator()
    about = {"atomic_numbers": [8, 1, 1], "kelvin": 300.0}
    fitted = dataclasses.replace(fitted, about=about)
    atoms = ase.Atoms("OHH", np.asarray(points[0]))
    atoms.calc = fitted.calculator()
    forces, step = atoms.get_forces(), 1e-4
    assert np.allclose(forces.sum(axis=0), 0, atol=1e-9)
    atoms.positions[1, 0] += step
    higher = atoms.get_potential_energy()
    atoms.positions[1, 0] -= 2 * step
    slope = (higher - atoms.get_potential_energy()) / (2 * step)
    assert -slope == pytest.approx(forces[1, 0], abs=1e-2)
    # `fixcm` of ASE heats small molecules.
    options = {"temperature_K": 300, "friction": 0.1 / units.fs, "fixcm": False}
    dynamics = Langevin(atoms, 0.5 * units.fs, rng=rng, **options)
    dynamics.run(500)
    frames = []
    dynamics.attach(lambda: frames.append(atoms.positions.copy()), interval=4)
    dynamics.run(24_000)
    assert mean_energy(np.array(frames)) == pytest.approx(1.5, abs=0.1)
    with pytest.raises(ValueError, match="`kelvin` is that of the data, 300"):
        fitted.calculator(600.0)
    unknown = dataclasses.replace(fitted, about={"atomic_numbers": [8, 1, 1]})
    single, atoms.calc = atoms.get_forces(), unknown.calculator(600.0)
    assert np.allclose(atoms.get_forces(), 2 * single)
    wrong = ase.Atoms("HOH", atoms.positions)
    wrong.calc = atoms.calc
    with pytest.raises(ValueError, match="in this order"):
        wrong.get_forces()
