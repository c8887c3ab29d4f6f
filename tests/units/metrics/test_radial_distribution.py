import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from equistein.groups import PeriodicCloud
from equistein.metrics import radial_distribution

OBLIQUE = [[3.0, 0.0, 0.0], [0.9, 2.9, 0.0], [-0.7, 0.6, 3.3]]


@pytest.mark.parametrize("cell", [(3.0, 4.0, 5.0), OBLIQUE, (2.0, 3.0)])
def test_it_is_1_for_particles_that_do_not_see_each_other(cell, key):
    group = PeriodicCloud("AAABBB", cell)
    shape = (2_000, 6, group.dim)
    points = jr.uniform(key, shape) @ jnp.asarray(group.cell) + 7.0
    for species in (None, (0, 1)):
        found = radial_distribution(points, group, num_bins=8, species=species)
        assert found.distances[-1] < group.longest_cutoff
        assert np.all(np.abs(found.values - 1) < 5 * found.errors)
        assert np.all(found.errors[2:] < 0.2)
    wrong = radial_distribution(0.7 * points, group, num_bins=8)
    assert np.any(np.abs(wrong.values - 1) > 5 * wrong.errors)


def test_a_lattice_by_hand():
    sites = np.stack(np.meshgrid(*3 * [np.arange(5.0)]), -1).reshape(1, 125, 3)
    group = PeriodicCloud((0,) * 125, (5.0, 5.0, 5.0))
    g = radial_distribution(jnp.asarray(sites + 0.3), group, num_bins=28)
    assert np.isnan(g.errors).all()  # of one frame
    near, edges = np.flatnonzero(g.values), np.linspace(0, 2.5, 29)
    places = np.array([1, 2, 3, 4, 5, 6]) ** 0.5
    assert near.tolist() == (np.searchsorted(edges, places) - 1).tolist()
    volume = 4 / 3 * np.pi * (edges[near + 1] ** 3 - edges[near] ** 3)
    assert np.allclose(g.values[near] * volume * 124 / 125, [6, 12, 8, 6, 24, 24])


def test_species_without_pairs_are_refused():
    group = PeriodicCloud("AB", (1.0, 1.0))
    with pytest.raises(ValueError, match=r"no pairs of `species` \(0, 0\)"):
        radial_distribution(jnp.zeros((1, 2, 2)), group, species=(0, 0))
