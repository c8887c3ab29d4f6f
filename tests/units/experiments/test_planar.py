"""What is measured of learned planar densities."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy.special import logsumexp

from equistein.energies import JointEnergy, PlainEnergy
from equistein.groups import Trivial
from equistein.networks import AbstractNetwork
from experiments._plane import held_out_likelihood, log_densities_of, Plane
from experiments.ebm_circles import density_of_radius, rings
from experiments.jem_c4 import classes


class Known(AbstractNetwork):
    function: Callable

    def __call__(self, point):
        return self.function(point)

    def group(self, shape):
        return Trivial()


BOWL = Known(lambda point: 3.0 - jnp.sum(point**2) / 2)
SLOPES = Known(lambda point: jnp.array([1.0, -2.0]) * point)


def test_classes_are_measured_at_any_temperature():
    energy, point = JointEnergy(SLOPES, 0.5), jnp.array([0.3, -0.7])
    found = log_densities_of(energy)(point)
    assert np.isclose(found[0], -energy(point))
    for label in (0, 1):
        assert np.isclose(found[1 + label], -energy.condition(label)(point))
    assert np.isclose(logsumexp(found[1:]), found[0])


def test_the_likelihood_is_normalized_on_the_plane():
    plane, origin = Plane(8.0, 120), jnp.zeros((1, 2))
    energy = PlainEnergy(BOWL)
    found = held_out_likelihood(plane, origin, energy)["log_likelihood"]
    assert np.isclose(found, -jnp.log(2 * jnp.pi), atol=1e-5)
    radii = np.linspace(0.1, 4.0, 9)
    profile = density_of_radius(plane, log_densities_of(energy), radii)
    assert np.allclose(profile, radii * np.exp(-(radii**2) / 2), atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("target", [rings((3.0, 10.0)), classes((7.0, 15.0))])
def test_exact_densities_are_normalized_and_lie_on_the_plane(target):
    logs, point = target.known.log_densities, jnp.array([6.0, 2.0])
    assert np.allclose(target.plane.log_normalizers(logs), 0, atol=1e-3)
    moved = target.group.act(target.group.sample(jax.random.key(0), 1)[0], point)
    assert np.allclose(logs(moved), logs(point))


@pytest.mark.slow
def test_the_family_is_fitted_by_maximum_likelihood():
    for target in (rings((3.0, 10.0)), classes((7.0, 15.0))):
        data, labels = target.sample(jax.random.key(1), 512)
        density = target.family(data, labels)
        assert np.allclose(
            target.plane.log_normalizers(density.log_densities), 0, atol=2e-3
        )
        mean = lambda density, points=data: jnp.mean(
            jax.jit(jax.vmap(density.log_densities))(points)[:, 0]
        )
        # At its own points it is likelier than the truth, by half its parameters.
        gain = 512 * (mean(density) - mean(target.known))
        assert 0 < gain < 15
        # The broken twin has learned other points: a fifth further out.
        twin = target.family(1.2 * data, labels)
        assert 512 * (mean(twin) - mean(target.known)) < -100
        assert density.samples(jax.random.key(2), 5)[0].shape == (5, 2)


def test_a_ring_has_no_modes():
    target = classes((7.0, 15.0))
    points, labels = target.sample(jax.random.key(3), 512)
    angles = jnp.linspace(0, 2 * jnp.pi, 512)
    ring = 7 * jnp.stack([jnp.cos(angles), jnp.sin(angles)], axis=1)

    def modes_found(drawn):
        logs = target.known.log_densities
        numbers, _ = target.measure(logs, 3 * [drawn], points, labels, points)
        return numbers["modes_found"]

    assert modes_found(points) == 8
    assert modes_found(ring) == 0
