"""Energies and forces of a file: in the order of the atoms, in kT, as objectives."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest

from equistein.diffusion import NoiseConditionalScoreMatching
from equistein.energies import KnownEnergy
from equistein.groups import PointCloud
from equistein.metrics import force_errors
from equistein.models import (
    ContrastiveSettings,
    DenoisingSettings,
    for_dataset,
    Problem,
    read_dataset,
)
from equistein.molecules import BOLTZMANN
from equistein.training import Blurred, ForceMatching, SquaredError

STIFFNESS, LENGTH, NUM = 20.0, 0.92, 24  # eV / Angstrom^2, Angstrom
UNIT = BOLTZMANN * 300


def spring(bond):
    """Return the energy of a bond from F to H, and the force on H."""
    length = np.linalg.norm(bond)
    return STIFFNESS / 2 * (length - LENGTH) ** 2, -STIFFNESS * (
        length - LENGTH
    ) * bond / length


def frame(number, forces=True, energy=True):
    """Return a molecule of HF as text, in one of two orders of the atoms."""
    rng = np.random.default_rng(number)
    bond = rng.normal(size=3)
    bond *= (LENGTH + 0.05 * rng.normal()) / np.linalg.norm(bond)
    value, force = spring(bond)
    atoms = [("F", np.zeros(3), -force), ("H", bond, force)]
    rows = [
        " ".join([name, *map(repr, map(float, [*place, *(push if forces else ())]))])
        for name, place, push in (atoms if number % 2 else atoms[::-1])
    ]
    columns = "species:S:1:pos:R:3" + ":forces:R:3" * forces
    told = f" energy={value - 1e4}" * energy
    return "\n".join(["2", f"Properties={columns}{told}", *rows, ""])


@pytest.fixture
def path(tmp_path):
    frames = [frame(n, forces=n != 3, energy=n not in (3, 5)) for n in range(NUM)]
    (tmp_path / "hf.xyz").write_text("".join(frames))
    return tmp_path / "hf.xyz"


def read(path, **options):
    return read_dataset(path, Problem(group="point-cloud", **options))


def test_forces_go_with_the_atoms_and_energies_with_the_rows(path):
    dataset = read(path)
    assert (dataset.energies.shape, dataset.forces.shape) == ((NUM,), (NUM, 2, 3))
    assert np.isnan(dataset.energies).sum() == 2
    unknown = np.isnan(dataset.forces).all(axis=(1, 2))
    assert unknown.sum() == 1
    for point, energy, forces in zip(
        np.asarray(dataset.points, float), dataset.energies, dataset.forces, strict=True
    ):
        value, force = spring(point[1] - point[0])  # F comes first in every row
        if np.isfinite(energy):
            assert np.isclose(energy, value - 1e4, atol=1e-5)
        if np.isfinite(forces).all():
            assert np.allclose(forces, [-force, force], atol=1e-4)
    parts = dataset.train(), dataset.held_out()
    assert [len(part.forces) for part in parts] == [22, 2]
    assert np.array_equal(parts[1].energies, dataset.energies[22:], equal_nan=True)


def test_energies_in_kt_are_labels_of_a_network_of_features_alone(path):
    assert read(path).labels is None
    assert read(path, kelvin=300.0).labels is None  # a graph network's
    assert read(path, kelvin=300.0, network="features", labels=False).labels is None
    dataset = read(path, kelvin=300.0, network="features")
    wanted = dataset.energies / UNIT
    wanted -= np.nanmean(wanted[:22])
    assert np.allclose(dataset.labels, wanted, atol=1e-3, equal_nan=True)
    assert abs(np.nanmean(dataset.labels[:22])) < 1e-4


def test_objectives_are_added(path, key):
    problem = Problem(group="point-cloud", kelvin=300.0, network="features")
    dataset = read_dataset(path, problem)
    settings = ContrastiveSettings(batch_size=8, widths=(4,))
    terms = for_dataset(key, dataset, settings).objective.terms
    assert [type(part) for _, part in terms][1:] == [SquaredError, ForceMatching]
    weight, forces = terms[2]
    scores = dataset.train().forces / UNIT
    assert np.allclose(forces.scores, scores, equal_nan=True)
    assert np.isclose(weight, 100 / np.nanmean(scores**2))
    off = dataclasses.replace(dataset, forces=None)
    assert len(for_dataset(key, off, settings).objective.terms) == 2
    noisy = ContrastiveSettings(batch_size=8, widths=(4,), data_noise=0.1)
    part = for_dataset(key, dataset, noisy).objective.terms[2][1]
    assert isinstance(part, Blurred)


@pytest.mark.usefixtures("single_precision")
def test_a_graph_network_learns_them_at_the_least_noise(path, key):
    problem = Problem(group="point-cloud", kelvin=300.0)
    settings = DenoisingSettings(batch_size=8, width=4, depth=1, sigma_min=0.03)
    model = for_dataset(key, read_dataset(path, problem), settings)
    (_, first), (_, second) = model.objective.terms
    assert isinstance(first, NoiseConditionalScoreMatching)
    assert isinstance(second, Blurred)
    assert isinstance(second.objective, ForceMatching)
    assert np.isclose(second.noise, 0.03)


@pytest.mark.parametrize(("factor", "force", "energy"), [(1.0, 0, 0), (0.5, 0.5, 0.5)])
def test_errors_are_those_of_held_out_frames(path, factor, force, energy):
    def log_density(point):
        length = jnp.sqrt(jnp.sum((point[1] - point[0]) ** 2))
        return -factor * STIFFNESS / 2 * (length - LENGTH) ** 2 / UNIT + 3

    dataset = read(path, kelvin=300.0, held_out=0.4)
    group = PointCloud(("F", "H"), 3)
    known = KnownEnergy(log_density, group)
    found = force_errors(known, dataset)
    mean = np.nanmean(np.abs(dataset.held_out().forces))
    assert np.isclose(found["held_out_force_error_of_zero"], mean)
    assert np.isclose(found["held_out_force_error"], force * mean, atol=1e-4)
    gaps = dataset.held_out().energies - np.nanmean(dataset.train().energies)
    wanted = 1e3 / 2 * energy * np.nanmean(np.abs(gaps))
    assert np.isclose(found["held_out_energy_error"], wanted, atol=1e-2)
    for none in (read(path), read(path, kelvin=300.0, held_out=0.0)):
        assert force_errors(known, none) == {}
