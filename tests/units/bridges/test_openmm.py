"""Force fields in JAX against OpenMM's Reference platform, in double precision."""

import pathlib
import sys

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import equistein as es

mm = pytest.importorskip("openmm", reason="needs OpenMM, pip install openmm")
from openmm import app, unit  # noqa: E402

KT = 8.31446261815324e-3 * 300  # kJ / mol
FREE = {
    "nonbondedMethod": app.NoCutoff, "constraints": None, "rigidWater": False,
}  # fmt: skip
DATA = pathlib.Path(app.__file__).parent / "data"  # of OpenMM
ALANINE = pathlib.Path(__file__).parents[3] / "benchmarks" / "alanine-dipeptide.pdb"


def alanine(*files, **options):
    pdb = app.PDBFile(str(ALANINE))
    system = app.ForceField(*files).createSystem(pdb.topology, **FREE | options)
    return system, np.array(pdb.positions.value_in_unit(unit.nanometer))


def nonbonded_system(particles, method=0, cutoff=1.0):
    system, force = mm.System(), mm.NonbondedForce()
    for charge, sigma, epsilon in particles:
        system.addParticle(20.0)
        force.addParticle(charge, sigma, epsilon)
    force.setNonbondedMethod(method)
    force.setCutoffDistance(cutoff)
    system.addForce(force)
    return system


def ion_pair():
    system = nonbonded_system([(1.0, 0.33, 0.01), (-1.0, 0.44, 0.42)])
    return system, np.array([[0.0, 0, 0], [0.28, 0, 0]])


def lennard_jones(switched=True):
    """Atoms with alternating charges and a cut-off that is less than the cluster."""
    charges = [0.3 * (-1) ** i for i in range(27)]
    system = nonbonded_system([(q, 0.34, 1.0) for q in charges], 1, 0.75)
    force = system.getForce(0)
    force.addException(0, 1, 0.0, 0.3, 0.0)
    force.addException(0, 26, -0.05, 0.3, 0.4)  # beyond the cut-off, which it has not
    force.setUseSwitchingFunction(switched)
    force.setSwitchingDistance(0.6)
    return system, 0.38 * np.argwhere(np.ones((3, 3, 3))).astype(float)


def water(num=4):
    """Flexible water molecules on a line."""
    topology, positions = app.Topology(), []
    chain = topology.addChain()
    for index in range(num):
        residue = topology.addResidue("HOH", chain)
        names = ("O", "oxygen"), ("H1", "hydrogen"), ("H2", "hydrogen")
        atoms = [
            topology.addAtom(name, app.Element.getBySymbol(name[0]), residue)
            for name, _ in names
        ]
        topology.addBond(atoms[0], atoms[1])
        topology.addBond(atoms[0], atoms[2])
        place = np.array([0.3 * index, 0.0, 0.0])
        for shift in ([0, 0, 0], [0.076, 0.059, 0], [-0.076, 0.059, 0]):
            positions.append(place + shift)
    system = app.ForceField("tip3p.xml").createSystem(topology, **FREE)
    return system, np.array(positions)


def protein(*files):
    """Villin with 582 atoms, from the files that OpenMM brings."""
    pdb = app.PDBFile(str(DATA / "test.pdb"))
    model = app.Modeller(pdb.topology, pdb.positions)
    model.deleteWater()
    others = [
        r for r in model.topology.residues() if r.name in ("CL", "NA", "Cl", "Na")
    ]
    model.delete(others)
    system = app.ForceField(*files).createSystem(model.topology, **FREE)
    return system, np.array(model.positions.value_in_unit(unit.nanometer))


def reference_context(system):
    platform = mm.Platform.getPlatformByName("Reference")
    return mm.Context(system, mm.VerletIntegrator(0.001), platform)


def perturbed(start, num=20, scale=0.002):
    return start + scale * np.random.default_rng(0).normal(size=(num, *start.shape))


def expected(system, points):
    """Return OpenMM's energies and forces."""
    context, energies, forces = reference_context(system), [], []
    for point in points:
        context.setPositions(point)
        state = context.getState(getEnergy=True, getForces=True)
        energies.append(state.getPotentialEnergy()._value)
        forces.append(state.getForces(asNumpy=True)._value)
    return np.array(energies), np.array(forces)


@eqx.filter_jit
def evaluate(density, points):
    return jax.vmap(jax.value_and_grad(density))(points)


def errors(system, points, dtype=np.float64, density=None):
    """Return relative errors of the energies and of the forces, the largest ones."""
    points = points.astype(dtype)
    energies, forces = expected(system, points.astype(float))
    if density is None:
        density = es.from_openmm(system, 300.0)
    values, scores = evaluate(density, jnp.asarray(points))
    wrong = np.abs(-KT * np.asarray(values, float) - energies)
    differences = np.linalg.norm(KT * np.asarray(scores, float) - forces, axis=(1, 2))
    sizes = np.linalg.norm(forces, axis=(1, 2))
    return np.max(wrong / np.abs(energies)), np.max(differences / sizes)


SMALL = {"ion pair": ion_pair, "water": water, "cluster": lennard_jones}
LARGER = {
    "plain cut-off": lambda: lennard_jones(switched=False),
    "vacuum": lambda: alanine("amber14-all.xml"),
    "CMAP": lambda: alanine("amber19-all.xml"),
    "GBSAOBCForce": lambda: alanine("amber99sb.xml", "amber99_obc.xml"),
    **{
        model: lambda model=model: alanine("amber14-all.xml", f"implicit/{model}.xml")
        for model in ("hct", "obc1", "obc2", "gbn", "gbn2")
    },
    "salt": lambda: alanine(
        "amber14-all.xml", "implicit/gbn2.xml", sasaMethod=None,
        implicitSolventKappa=1.0 / unit.nanometer,
    ),
    "GBn2 with a cut-off": lambda: alanine(
        "amber14-all.xml", "implicit/gbn2.xml", nonbondedCutoff=0.6 * unit.nanometer,
        nonbondedMethod=app.CutoffNonPeriodic,
    ),
    "OBC with a cut-off": lambda: alanine(
        "amber99sb.xml", "amber99_obc.xml", nonbondedCutoff=0.6 * unit.nanometer,
        nonbondedMethod=app.CutoffNonPeriodic,
    ),
}  # fmt: skip
EVERY = [
    *(pytest.param(make, id=name) for name, make in SMALL.items()),
    *(
        pytest.param(make, id=name, marks=pytest.mark.slow)
        for name, make in LARGER.items()
    ),
]


@pytest.mark.parametrize("make", EVERY)
def test_energies_and_forces_are_those_of_openmm(make):
    system, start = make()
    assert max(errors(system, perturbed(start))) < 1e-6


@pytest.mark.slow
@pytest.mark.parametrize(
    "files", [("amber19-all.xml",), ("amber14-all.xml", "implicit/gbn2.xml")]
)
def test_a_protein_has_the_energies_of_openmm(files):
    system, start = protein(*files)
    assert max(errors(system, perturbed(start, num=2))) < 1e-6


@pytest.mark.parametrize("make", EVERY)
@pytest.mark.usefixtures("single_precision")
def test_single_precision_holds_with_a_reference(make):
    system, start = make()
    density = es.from_openmm(system, 300.0, reference=start)
    points = perturbed(start).astype(np.float32)
    energies, forces = expected(system, points.astype(float))
    values, scores = evaluate(density, jnp.asarray(points))
    assert values.dtype == scores.dtype == np.float32
    found = density.energies(start[None])[0] - KT * np.asarray(values, float)
    assert np.max(np.abs(found - energies) / np.abs(energies)) < 1e-4
    assert np.allclose(density.energies(points), energies, rtol=1e-6)
    differences = np.linalg.norm(KT * np.asarray(scores, float) - forces, axis=(1, 2))
    assert np.max(differences / np.linalg.norm(forces, axis=(1, 2))) < 1e-4


def test_a_changed_parameter_is_noticed():
    system, start = water()
    density = es.from_openmm(system, 300.0)
    force = next(f for f in system.getForces() if isinstance(f, mm.HarmonicBondForce))
    i, j, length, stiffness = force.getBondParameters(0)
    force.setBondParameters(0, i, j, 1.001 * length, stiffness)
    assert max(errors(system, perturbed(start), density=density)) > 1e-6


def test_equal_systems_are_compiled_once():
    count = []

    @eqx.filter_jit
    def value(density, point):
        count.append(1)
        return density(point)

    for charge in (1.0, 0.9):
        system = nonbonded_system([(charge, 0.33, 0.01), (-charge, 0.44, 0.42)])
        value(es.from_openmm(system, 300.0), jnp.array([[0.0, 0, 0], [0.28, 0, 0]]))
    assert len(count) == 1


def test_atoms_at_one_place_and_bonds_in_line_have_no_nan():
    system, start = lennard_jones(switched=False)
    start[1] = start[5]
    (value,), _ = evaluate(es.from_openmm(system, 300.0), jnp.asarray(start[None]))
    assert value < -1e20
    system, start = water(1)
    start[1], start[2] = [0.1, 0, 0], [-0.1, 0, 0]
    _, slope = evaluate(es.from_openmm(system, 300.0), jnp.asarray(start[None]))
    assert np.isfinite(slope).all()


@pytest.mark.slow
def test_a_run_samples_a_force_field(key):
    system, start = water(2)
    density = es.from_openmm(system, 300.0, reference=start)
    chains = es.MALA(1e-6, project=density.group.project)
    starts = jnp.asarray(perturbed(start, num=8, scale=0.001))
    samples = es.run(key, chains, density, starts, num_steps=20)
    assert np.isfinite(samples.history["log_density"]).all()
    es.check_invariance(density, density.group, starts)


# ---------------------------------------------------------------------- refusals


def with_force(force):
    system, _ = ion_pair()
    system.addForce(force)
    return system


def constrained():
    system, _ = ion_pair()
    system.addConstraint(0, 1, 0.3)
    return system


def virtual():
    system, _ = ion_pair()
    system.addParticle(0.0)
    system.getForce(0).addParticle(0.0, 0.1, 0.0)
    system.setVirtualSite(2, mm.TwoParticleAverageSite(0, 1, 0.5, 0.5))
    return system


def fixed():
    system, _ = ion_pair()
    system.setParticleMass(1, 0.0)
    return system


def custom_born(text):
    force = mm.CustomGBForce()
    force.addPerParticleParameter("q")
    force.addEnergyTerm(text, mm.CustomGBForce.SingleParticle)
    force.addParticle([1.0])
    force.addParticle([2.0])
    return with_force(force)


def without_direct_space():
    system, _ = ion_pair()
    system.getForce(0).setIncludeDirectSpace(False)
    return system


REFUSED = {
    "direct space": without_direct_space,
    "constraints=None, rigidWater=False": constrained,
    "virtual site": virtual,
    "fixed": fixed,
    "NoCutoff": lambda: nonbonded_system([(0.0, 0.3, 1.0)], mm.NonbondedForce.PME),
    "CutoffNonPeriodic": lambda: nonbonded_system([(0.0, 0.3, 1.0)], 2),
    "MonteCarloBarostat": lambda: with_force(mm.MonteCarloBarostat(1.0, 300.0)),
    "AndersenThermostat": lambda: with_force(mm.AndersenThermostat(300.0, 1.0)),
    "CustomExternalForce": lambda: with_force(mm.CustomExternalForce("x^2")),
    "from_energy_forces": lambda: with_force(mm.RBTorsionForce()),
    "'gamma' in": lambda: custom_born("gamma*q^2"),
    "'floor": lambda: custom_born("floor(q)"),
    "openmm.System": lambda: "system.xml",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_not_translated_is_refused_by_name(text):
    with pytest.raises(ValueError, match="`system`") as caught:
        es.from_openmm(REFUSED[text](), 300.0)
    assert text in str(caught.value)


def test_starts_in_other_units_are_refused(key):
    system, start = water()
    density = es.from_openmm(system, 300.0)
    with pytest.raises(ValueError, match="nm apart"):
        density.check_start(0.1 * start[None])
    with pytest.raises(ValueError, match="From Angstrom"):
        es.from_openmm(system, 300.0, reference=10 * start)
    points = jnp.asarray(10 * start[None])
    with pytest.raises(ValueError, match="From Angstrom"):
        es.run(key, es.MALA(1e-6), density, points, num_steps=1)
    with pytest.raises(ValueError, match="12 atoms"):
        density(jnp.zeros((3, 3)))
    with pytest.raises(ValueError, match="`reference`"):
        es.from_openmm(system, 300.0, reference=np.zeros((3, 3)))
    with pytest.raises(ValueError, match="`kelvin`"):
        es.from_openmm(system, -1.0)
    with pytest.warns(UserWarning, match="in K, not kT"):
        es.from_openmm(system, 2.49)


def test_positions_with_a_unit_are_taken_in_it():
    system, start = ion_pair()
    plain = es.from_openmm(system, 300.0, reference=start)
    united = es.from_openmm(system, 300.0, reference=10 * start * unit.angstrom)
    stretched = 11 * start
    assert float(united(stretched * unit.angstrom)) == plain(0.1 * stretched) != 0
    energies = united.energies(stretched[None] * unit.angstrom)
    assert energies == plain.energies(0.1 * stretched[None])
    for points in (start, start[None, :1]):
        with pytest.raises(ValueError, match="2 atoms"):
            plain.energies(points)


def test_without_openmm_the_command_that_installs_it_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "openmm", None)
    with pytest.raises(ImportError, match="equistein.openmm"):
        es.from_openmm(None, 300.0)
