"""Elements that groups draw: of the group, and by its Haar measure."""

import jax.random as jr
import numpy as np
from group_registry import (
    are_elements,
    every_finite_group,
    every_group,
    every_group_of_rotations,
    flat,
    matrices_of,
    move,
    orbit,
    pick,
    reflects,
    sample,
)
from registries import normal

from equistein.groups import PointCloud, TorusTranslations

_MANY = 4_000


@every_group_of_rotations
def test_haar_mean_of_the_action_is_zero(make, shape, key):
    group = make()
    element_key, point_key = jr.split(key)
    x = group.project(normal(point_key, shape))
    orbit = move(group, sample(group, element_key, _MANY), x)
    standard_error = np.std(orbit, axis=0) / _MANY**0.5
    assert np.max(np.abs(np.mean(orbit, axis=0)) / standard_error) < 5


@every_group_of_rotations
def test_haar_moments_of_the_trace_are_those_of_the_group(make, shape, key):
    group = make()
    traces = np.trace(matrices_of(group, sample(group, key, _MANY)), axis1=1, axis2=2)
    # The mean square of an irreducible character is 1; SO(2)'s is a sum of two.
    square = 1.0 if reflects(group) or group.dim > 2 else 2.0
    for values, expected in ((traces, 0.0), (traces**2, square)):
        standard_error = np.std(values) / _MANY**0.5
        assert abs(np.mean(values) - expected) < 5 * standard_error


@every_finite_group
def test_finite_groups_are_sampled_evenly(make, shape, key):
    group = make()
    element_key, point_key = jr.split(key)
    x = normal(point_key, shape)
    moved = move(group, sample(group, element_key, _MANY), x)
    gaps = np.abs(moved[:, None] - orbit(group, x)[None])
    which = np.argmin(flat(gaps, 2).sum(axis=2), axis=1)
    counts = np.bincount(which, minlength=group.order)
    share = 1 / group.order
    standard_error = (_MANY * share * (1 - share)) ** 0.5
    assert np.all(np.abs(counts - _MANY * share) <= 5 * standard_error)


@every_group
def test_sampled_elements_belong_to_the_group(make, shape, key):
    group = make()
    element_key, point_key = jr.split(key)
    elements, x = sample(group, element_key, _MANY), normal(point_key, shape)
    for first in range(0, 64, 8):
        assert are_elements(group, pick(elements, slice(first, first + 8)), x)


@every_group_of_rotations
def test_reflections_are_drawn_if_and_only_if_they_belong(make, shape, key):
    group = make()
    signs = np.sign(np.linalg.det(matrices_of(group, sample(group, key, _MANY))))
    assert set(signs) == ({-1.0, 1.0} if reflects(group) else {1.0})


def test_haar_moments_of_shifts_are_those_of_a_circle(key):
    angles = np.asarray(TorusTranslations([2.0, 3.0]).sample(key, _MANY))
    waves = np.exp(1j * np.outer([1, 2, 3], angles))
    assert np.max(np.abs(np.mean(waves, axis=1))) < 4 / _MANY**0.5
    half = np.mean(np.exp(1j * angles / 2))  # of a density that has twice the period
    assert abs(half) > 0.5


def test_drawn_permutations_of_a_point_cloud_are_listed(key):
    group = PointCloud("COOC", 2)
    drawn = np.asarray(group.sample(key, 64).permutation)
    listed = {tuple(order) for order in group.permutations()}
    assert {tuple(order) for order in drawn} == listed
