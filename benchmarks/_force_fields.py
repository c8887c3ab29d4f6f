"""Gradients of alanine dipeptide, beside OpenMM contexts called one after another."""

import importlib
import pathlib
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from benchmarks._timing import Contestant, is_installed, print_times, repeated
from equistein.bridges import from_openmm

_NUM = 512
_PDB = pathlib.Path(__file__).parent / "alanine-dipeptide.pdb"
_SOLVENTS = {
    "vacuum": (),
    "OBC2": ("implicit/obc2.xml",),
    "GBn2": ("implicit/gbn2.xml",),
}


def force_fields() -> None:
    """Print the milliseconds of the gradients of 512 replicas, Amber14 at 300 K."""
    if not is_installed("openmm", "OpenMM"):
        return
    for solvent, files in _SOLVENTS.items():
        _against_openmm(solvent, ("amber14-all.xml", *files))


def _against_openmm(solvent: str, files: tuple[str, ...]) -> None:
    app = importlib.import_module("openmm.app")
    pdb = app.PDBFile(str(_PDB))
    system = app.ForceField(*files).createSystem(
        pdb.topology, nonbondedMethod=app.NoCutoff, constraints=None, rigidWater=False
    )
    start = np.array(pdb.getPositions(asNumpy=True)._value)
    points = jnp.asarray(start + 0.003 * jr.normal(jr.key(0), (_NUM, *start.shape)))
    density = from_openmm(system, 300.0)
    gradients = eqx.filter_jit(lambda density, x: jax.vmap(jax.grad(density))(x))
    ours = lambda: jax.block_until_ready(gradients(density, points))
    contestants = {
        "equistein": repeated(ours, 20),
        "OpenMM, Reference": Contestant(_calls(system, points, "Reference"), repeats=2),
        "OpenMM, CPU, one thread": Contestant(
            _calls(system, points, "CPU", {"Threads": "1"}), repeats=2
        ),
        "OpenMM, CPU": Contestant(_calls(system, points, "CPU"), repeats=2),
    }
    print(f"\nGradients of {_NUM} replicas of alanine dipeptide, {solvent}")
    print_times(contestants, "equistein")


def _calls(
    system: Any, points: Any, platform: str, properties: dict[str, str] | None = None
) -> Callable[[], None]:
    """Return what evaluates the points by a context, one after the other."""
    openmm = importlib.import_module("openmm")
    where = openmm.Platform.getPlatformByName(platform)
    integrator = openmm.VerletIntegrator(0.001)
    context = openmm.Context(system, integrator, where, properties or {})

    def run() -> None:
        for point in np.asarray(points, float):
            context.setPositions(point)
            context.getState(getForces=True).getForces(asNumpy=True)

    return run
