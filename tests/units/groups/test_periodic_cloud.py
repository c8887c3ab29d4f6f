import itertools

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from equistein.groups import PeriodicCloud

OBLIQUE = [[3.0, 0.0, 0.0], [1.2, 2.9, 0.0], [-0.7, 0.6, 3.3]]
HEXAGONAL = [[1.0, 0.0, 0.0], [-0.5, 0.75**0.5, 0.0], [0.0, 0.0, 1.6]]


@pytest.mark.parametrize(
    ("cell", "num"),
    [
        ((2.0, 2.0, 2.0), 48),
        ((2.0, 2.0, 3.0), 16),
        ((2.0, 2.5, 3.0), 8),
        (HEXAGONAL, 24),
        (OBLIQUE, 2),
        ([[1.0, 1.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]], 48),
        ([[1.0, 3.0, 1.0], [1.0, 2.0, 1.0], [2.0, 1.0, 1.0]], 48),
        ((1.0, 1.0, 1e6), 16),
        ((1.0, 1.0), 8),
        (np.array([[1.0, 0.0], [0.5, 0.75**0.5]]), 12),
    ],
)
def test_rotations_are_the_point_group_of_the_lattice(cell, num):
    group = PeriodicCloud("AA", cell)
    assert len(group.rotations()) == num
    assert np.array_equal(group.rotations()[0], np.eye(group.dim))
    proper = group.without_reflections()
    assert len(proper.rotations()) == num // 2
    assert proper.without_reflections() is proper
    assert group.contains(proper)
    assert not proper.contains(group)
    assert not group.contains(PeriodicCloud("AA", 2 * np.array(group.cell)))


@pytest.mark.parametrize("cell", [(2.0, 3.0, 4.0), OBLIQUE])
def test_minimum_image_is_the_nearest_of_all(cell, key):
    group = PeriodicCloud("AA", cell)
    gaps = 5 * np.asarray(jr.normal(key, (400, 3)))
    found = np.asarray(group.minimum_image(jnp.asarray(gaps)))
    turns = np.array(list(itertools.product(range(-9, 10), repeat=3)))
    every = gaps[:, None] - (turns @ np.array(group.cell))[None]
    least = np.linalg.norm(every, axis=-1).min(axis=1)
    lengths = np.linalg.norm(found, axis=-1)
    near = least < group.longest_cutoff
    assert np.mean(near) > 0.1
    assert np.allclose(lengths[near], least[near])
    assert np.all(lengths >= least - 1e-9)
    whole = (found - gaps) @ np.linalg.inv(group.cell)
    assert np.allclose(whole, np.round(whole), atol=1e-9)
    slope = jax.jacobian(group.minimum_image)(jnp.asarray(gaps[0]))
    assert np.array_equal(slope, np.eye(3))


def test_wrapped_points_are_in_the_cell_and_the_same_modulo_it(key):
    group = PeriodicCloud("ABBA", OBLIQUE)
    point = 10 * jr.normal(key, (4, 3))
    places = np.asarray(group.wrap(point)) @ np.linalg.inv(OBLIQUE)
    assert np.all((places >= 0) & (places < 1))
    turns = places - np.asarray(point) @ np.linalg.inv(OBLIQUE)
    assert np.allclose(turns, np.round(turns), atol=1e-9)


def test_shifts_are_even_over_the_cell(key):
    group = PeriodicCloud("AA", OBLIQUE)
    places = np.asarray(group.sample(key, 4_000).shift) @ np.linalg.inv(OBLIQUE)
    counts = [np.histogram(axis, 8, (0, 1))[0] for axis in places.T]
    assert np.all(np.abs(np.array(counts) - 500) < 5 * (500 * 7 / 8) ** 0.5)


@pytest.mark.parametrize(
    "cell",
    [
        (),
        (1.0, 0.0),
        (1.0, np.nan),
        [[1.0, 1.0], [2.0, 2.0]],
        "cube",
        None,
        2.0,
        [1] * 4,
    ],
)
def test_cells_without_volume_are_refused(cell):
    with pytest.raises(ValueError, match="`cell` must be the sides"):
        PeriodicCloud("AA", cell)


def test_a_cutoff_beyond_half_the_cell_is_refused():
    group = PeriodicCloud("AA", (4.0, 5.0, 6.0))
    group.check_cutoff("This", 2.0)
    for cutoff in (2.1, None):
        with pytest.raises(ValueError, match=r"half the least .* 2, but got"):
            group.check_cutoff("This", cutoff)
