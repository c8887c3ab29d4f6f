import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from molecules_by_hand import clouds, energy_of, GROUP, known

from equistein.diffusion import NoiseEnergy
from equistein.groups import check_invariance, PointCloud, Trivial
from equistein.networks import EGNN, NoiseMLP


@pytest.fixture(scope="module")
def data():
    return clouds(jr.key(0))


@pytest.fixture(scope="module")
def energy(data):
    return energy_of(jr.key(1), data, sigma_min=0.1)


def test_energy_is_invariant_at_every_level(energy, data):
    assert energy.group((3, 3)).species == GROUP.species

    @eqx.filter_jit
    def at(noise, point):
        return energy.at(noise)(point)

    for noise in (energy.sigma_min, energy.sigma_max):
        function = functools.partial(at, noise)
        check_invariance(function, GROUP, data, tolerance=1e-9)
    assert abs(at(energy.sigma_min, data[0]) - at(energy.sigma_max, data[0])) > 1e-3


def test_it_is_the_energy_at_the_least_noise(energy, data):
    both = eqx.filter_jit(lambda e, x: (e(x), e.at(e.sigma_min)(x)))
    found, expected = both(energy, data[0])
    assert found == expected


def test_energy_confines_its_particles(energy, data):
    far = 1e4 * data[0]
    force = jax.jit(jax.grad(energy))(far)
    pull = jnp.sum(force * far) / jnp.sum(far**2)
    expected = 1 / (energy.sigma_min**2 + energy.scale**2)
    assert np.isclose(pull, expected, rtol=0.1)


def test_with_a_silent_network_the_energy_is_that_of_a_normal_density(energy, data):
    silent, noise = known(energy, 0.0), jnp.asarray(0.7)
    variance = 0.7**2 + jnp.mean(data**2)
    expected = jnp.sum(data[0] ** 2) / (2 * variance)
    assert np.isclose(silent.at(noise)(data[0]), expected)
    # Tweedie's rule for a normal density.
    share = jnp.mean(data**2) / variance
    assert np.allclose(silent.at(noise).denoise(data[0]), share * data[0])


def test_denoising_one_cloud_gives_that_cloud(energy, data):
    exact = known(energy, 1.0).at(jnp.asarray(0.3))
    assert np.allclose(exact.denoise(data[0]), 0, atol=1e-12)


def test_levels_fall_from_the_largest_to_the_least(energy):
    levels = energy.level(jnp.linspace(0, 1, 5))
    assert np.allclose(levels[jnp.array([0, -1])], [2 * energy.scale, 0.1])
    assert np.allclose(levels[1:] / levels[:-1], levels[1] / levels[0])


def test_training_draws_one_level_from_each_part_of_the_range(energy, key):
    levels = np.log(energy.random_levels(key, 16))
    high, low = float(jnp.log(energy.sigma_max)), np.log(0.1)
    places = 16 * (high - levels) / (high - low)
    assert np.array_equal(np.floor(places), np.arange(16))


def test_start_is_as_wide_as_the_blurred_data(energy, key):
    points = energy.start(key, 4_000, (3, 3))
    assert np.allclose(jnp.mean(points, axis=1), 0, atol=1e-6)
    width = jnp.sqrt(energy.sigma_max**2 + energy.scale**2)
    # A third of the coordinates is the center of mass, which is taken off.
    assert np.isclose(jnp.std(points), width * np.sqrt(2 / 3), rtol=0.02)


def test_scale_and_levels_are_no_weights(energy, data):
    def value(energy):
        return energy(data[0]) + energy.level(jnp.asarray(0.5))

    gradient = eqx.filter_jit(eqx.filter_grad(value))(energy)
    assert gradient.scale == gradient.sigma_min == gradient.sigma_max == 0
    assert gradient.network.reach == 0


def test_a_network_without_symmetry_makes_energies_too(data, key):
    plain = NoiseEnergy(NoiseMLP(9, widths=(4,), key=key), data, 0.1, 3.0)
    assert plain.group((3, 3)) == Trivial()
    assert plain.sigma_max == 3.0
    assert np.array_equal(plain.project(data[0]), data[0])
    assert np.isclose(plain.scale, jnp.sqrt(jnp.mean(data**2)))


def test_bad_arguments_are_refused(data, key):
    with pytest.raises(ValueError, match="mirror images"):
        energy_of(key, data, PointCloud("COO", 3, reflections=False))
    with pytest.raises(ValueError, match="coincide"):
        energy_of(key, jnp.zeros((8, 3, 3)))
    with pytest.raises(ValueError, match="shape"):
        NoiseEnergy(EGNN("CO", key=key, width=4, depth=1), data, 0.1)
