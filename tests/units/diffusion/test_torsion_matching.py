"""Linear energies that get the torsions of their data."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest

import equistein as es
from equistein.diffusion import match_torsions
from equistein.energies import KnownEnergy, LinearEnergy, values_at
from equistein.features import Bonded
from equistein.groups import Molecule, PointCloud

CHAIN = ([(0, 1), (1, 2), (2, 3)], [1, 8, 8, 1])
AXIS = np.linspace(-np.pi, np.pi, 720, endpoint=False)
TRUE = np.exp(4 * np.cos(2 * AXIS) + 0.7 * np.cos(AXIS))  # a barrier of 8 kT
TRUE /= TRUE.sum()
IS_CIS = np.abs(AXIS) < np.pi / 2  # .79 of it


def placed(lengths, angles, torsions):
    zero, middle = np.zeros_like(torsions), lengths[:, 1]
    (near, far), (up, down) = np.sin(angles).T, np.cos(angles).T
    near, far = lengths[:, 0] * near, lengths[:, 2] * far
    first = np.stack([near, zero, lengths[:, 0] * up], axis=1)
    ends = far * np.cos(torsions), far * np.sin(torsions), middle - lengths[:, 2] * down
    between = np.stack([zero, zero, middle], axis=1)
    return np.stack([first, 0 * first, between, np.stack(ends, axis=1)], axis=1)


def frames(seed, num):
    rng = np.random.default_rng(seed)
    torsions = rng.choice(AXIS, num, p=TRUE)
    lengths, angles = rng.normal(1, 0.05, (num, 3)), rng.normal(1.9, 0.05, (num, 2))
    points = placed(lengths, angles, torsions)
    is_cis = np.abs(torsions) < np.pi / 2
    return points - points.mean(axis=1, keepdims=True), is_cis


def learned(fitted):
    num = len(AXIS)
    points = placed(np.ones((num, 3)), np.full((num, 2), 1.9), AXIS)
    energies = np.asarray(values_at(fitted.energy, jnp.asarray(points, float)))
    density = np.exp(energies.min() - energies)
    return density[IS_CIS].sum() / density.sum()


def fit(seed, data, **options):
    energy = LinearEnergy(Bonded(*CHAIN), **options)
    return es.fit_linear(seed, energy, data, progress=False)


@pytest.mark.filterwarnings("ignore:The standard error of a typical point")
def test_torsions_that_no_data_connect_get_the_weights_of_the_data():
    gaps = {"solve": [], "matched": []}
    for seed in range(3):
        points, is_cis = frames(seed, 1_000)
        fitted = fit(seed, points)
        matched = match_torsions(seed, fitted, points, Molecule(CHAIN))
        gaps["solve"].append(abs(learned(fitted) - is_cis.mean()))
        gaps["matched"].append(abs(learned(matched) - is_cis.mean()))
        before, after = (each.solutions[0].covariance for each in (fitted, matched))
        assert np.trace(after) < np.trace(before)
    assert max(gaps["matched"]) < 0.04  # three standard errors
    assert np.median(gaps["solve"]) > 0.1  # the twin: slopes alone


@pytest.mark.filterwarnings("ignore:The standard error of a typical point")
def test_a_known_part_counts():
    points, is_cis = frames(1, 1_000)
    fitted = fit(
        0, points, base=KnownEnergy(half_of_the_truth, PointCloud(range(4), 3))
    )
    matched = match_torsions(0, fitted, points, Molecule(CHAIN))
    assert abs(learned(matched) - is_cis.mean()) < 0.04


def half_of_the_truth(point):
    torsion = es.features.Torsions([(0, 1, 2, 3)])(point)
    return 4 * torsion[0] ** 2 + 0.35 * torsion[0]


def test_copies_have_other_torsions_alone_and_keep_volume():
    from equistein.diffusion._torsion_matching import _rotatable_bonds, _rotated

    bonds = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 2), (1, 5)]  # a ring of 2, 3 and 4
    ring = Molecule((bonds, [1, 6, 6, 6, 6, 1]))
    rotatable = _rotatable_bonds(ring)
    assert [bond[:2] for bond in rotatable] == [(1, 2)]
    points = np.random.default_rng(0).normal(size=(50, 6, 3))
    features = Bonded(ring.bonds, ring.atomic_numbers)
    is_torsion = features.penalties((6, 3)) == 1

    copies = _rotated(np.random.default_rng(1), points, rotatable)
    gaps = np.abs(features.in_double(copies) - features.in_double(points))
    assert gaps[:, ~is_torsion].max() < 1e-3 < gaps[:, is_torsion].max()

    def rotate(flat):
        one = np.asarray(flat).reshape(1, 6, 3)
        return _rotated(np.random.default_rng(1), one, rotatable).ravel()

    shifts = 1e-5 * np.eye(18)
    first = points[0].ravel()
    jacobian = [(rotate(first + s) - rotate(first - s)) / 2e-5 for s in shifts]
    assert np.isclose(abs(np.linalg.det(jacobian)), 1, atol=1e-6)


def test_molecules_without_torsions_and_fits_with_classes_are_left():
    points = np.random.default_rng(0).normal(size=(40, 3, 3))
    water = Molecule(([(0, 1), (0, 2)], [8, 1, 1]))
    energy = LinearEnergy(Bonded(water.bonds, water.atomic_numbers))
    fitted = es.fit_linear(0, energy, points, progress=False)
    assert match_torsions(0, fitted, points, water) is fitted
    without = dataclasses.replace(fitted, solutions=())
    with pytest.raises(ValueError, match="no classes"):
        match_torsions(0, without, points, water)
    with pytest.raises(ValueError, match="of shape"):
        match_torsions(0, fitted, points[:, :2], water)
