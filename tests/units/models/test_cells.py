"""A liquid learned from its frames: read, solved, sampled, written."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import equistein as es
from equistein.data import Dataset, read_frames
from equistein.energies import values_at
from equistein.models import for_dataset, judge
from equistein.molecules import BOLTZMANN, write_xyz

KELVIN, SIGMA = 180.0, 3.4  # argon
FLUID = es.targets.LennardJonesFluid(20, density=0.6, temperature=1.5, cutoff=1.6)


@pytest.fixture(scope="module")
def liquid(tmp_path_factory):
    """A data set of frames in Angstrom with forces in eV / Angstrom, by a file."""
    points = np.asarray(FLUID.sample(0, 160, num_steps=150))
    path = tmp_path_factory.mktemp("liquid") / "argon.xyz"
    edges = SIGMA * np.array(FLUID.group.cell)
    write_xyz(path, ["Ar"] * 20, SIGMA * points, cell=edges)
    data = Dataset.of_molecules(read_frames(path), str(path))
    scores = jax.jit(jax.vmap(jax.grad(FLUID.log_density)))(points)
    forces = BOLTZMANN * KELVIN / SIGMA * np.asarray(scores)
    return dataclasses.replace(data, forces=forces, kelvin=KELVIN, num_held_out=40)


def on_device(data):
    return dataclasses.replace(data, points=jnp.asarray(data.points))


@pytest.mark.parametrize(
    ("given", "limit"),
    [(True, 0.03), pytest.param(False, 0.3, marks=pytest.mark.slow)],
)
def test_forces_of_a_liquid_are_learned_from_its_frames(liquid, given, limit):
    assert isinstance(liquid.group, es.groups.PeriodicCloud)
    data = on_device(liquid)
    known = data if given else dataclasses.replace(data, forces=None)
    model = for_dataset(jax.random.key(0), known)
    fitted = model.fit(1, known.train().points)
    held_out = jnp.asarray(liquid.held_out().points)
    found = np.asarray(values_at(jax.grad(fitted.energy.log_density), held_out))
    forces = liquid.held_out().forces / (BOLTZMANN * KELVIN)
    error = np.sqrt(np.mean((found - forces) ** 2) / np.mean(forces**2))
    assert error < limit
    assert fitted.about["cell"] == np.array(liquid.group.cell).tolist()


@pytest.mark.slow
@pytest.mark.usefixtures("single_precision")
def test_samples_of_a_liquid_have_its_distances_and_energies(liquid):
    known = on_device(liquid)
    model = for_dataset(jax.random.key(0), known)
    fitted = model.fit(1, known.train().points)
    outcomes, pictures = judge(jax.random.key(1), fitted, known, num_samples=64)
    assert "radial_distribution" in pictures
    samples, data = outcomes["model"].samples, jnp.asarray(liquid.points)
    ours, theirs = (
        es.metrics.radial_distribution(jnp.asarray(x), liquid.group, num_bins=12)
        for x in (samples, data)
    )
    error = np.hypot(ours.errors, theirs.errors)
    far = theirs.values > 0.1
    assert np.sum(far) > 4
    assert np.max(np.abs(ours.values - theirs.values)[far] / error[far]) < 4.5
    drawn, known = (np.asarray(values_at(fitted.energy, x)) for x in (samples, data))
    spread = np.hypot(drawn.std() / 64**0.5, known.std() / 160**0.5)
    assert abs(drawn.mean() - known.mean()) < 4.5 * spread
    squeezed = es.metrics.radial_distribution(
        jnp.asarray(0.9 * samples), liquid.group, num_bins=12
    )
    assert np.max(np.abs(squeezed.values - theirs.values)[far] / error[far]) > 4.5
