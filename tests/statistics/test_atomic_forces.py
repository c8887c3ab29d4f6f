"""Linear energies of atoms, against the forces of frames that are held out."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import equistein as es

KELVIN = 600.0


def force_error(fitted, frames, forces):
    """Return the error of the forces over the forces, root mean squares of both."""
    gradients = jax.lax.map(
        jax.grad(fitted.log_density), jnp.asarray(frames, float), batch_size=50
    )
    gaps = np.asarray(gradients) - forces
    return np.sqrt(np.mean(gaps**2) / np.mean(forces**2))


def copper_frames(num):
    """Return frames of a cluster by effective medium theory, and forces over kT."""
    from ase import units
    from ase.calculators.emt import EMT
    from ase.cluster import Icosahedron
    from ase.constraints import FixCom
    from ase.md.langevin import Langevin

    atoms = Icosahedron("Cu", 2)
    atoms.calc = EMT()
    atoms.set_constraint(FixCom())
    chain = Langevin(
        atoms, 5 * units.fs, temperature_K=KELVIN, friction=0.02 / units.fs,
        fixcm=False, rng=np.random.default_rng(0),
    )  # fmt: skip
    chain.run(500)
    frames = []
    for _ in range(num):
        chain.run(10)
        frames.append((atoms.get_positions(), atoms.get_forces(apply_constraint=False)))
    positions, forces = map(np.array, zip(*frames, strict=True))
    return positions, forces / (units.kB * KELVIN)


@pytest.mark.slow
def test_copper_needs_the_embedding():
    pytest.importorskip("ase")
    frames, forces = copper_frames(1_000)
    data, known = frames[:900], forces[:900]
    species = [0] * 13
    pairs = es.features.PairBasis(species, data)
    embedding = es.features.TripletBasis(
        species, data, num_radial=0, embedding=(0.5, 2.0, 3.0)
    )
    errors = []
    for features in (pairs, es.features.Concatenated(pairs, embedding)):
        energy = es.energies.LinearEnergy(features)
        fitted = es.fit_linear(0, energy, data, forces=known, progress=False)
        errors.append(force_error(fitted, frames[900:], forces[900:]))
    assert errors[0] > 0.15  # pairs alone cannot
    assert errors[1] < 0.02
