import itertools

import jax
import jax.random as jr
import numpy as np
import pytest
from scipy.integrate import quad

from equistein.targets import LennardJonesFluid

SMALL = LennardJonesFluid(20, density=0.7, cutoff=1.5)
log_density = jax.jit(SMALL.log_density)


def pair_energy(r):
    return 4 * (r**-12 - r**-6)


def by_images(points, target, scale=1.0):
    """Return the energy of all pairs of particles and images within the cut-off."""
    total, side = 0.0, target.side * scale
    for first, second in itertools.combinations(scale * np.asarray(points), 2):
        for turn in itertools.product((-2, -1, 0, 1, 2), repeat=3):
            r = np.linalg.norm(first - second + side * np.array(turn))
            if r < target.cutoff * scale:
                total += pair_energy(r)
    return total


def tail(target, function):
    """Return the integral of a function of pairs beyond the cut-off."""
    shell = lambda r: 4 * np.pi * r**2 * function(r)
    return quad(shell, target.cutoff, np.inf, epsabs=1e-12)[0]


def test_energy_and_pressure_are_those_of_all_images(key):
    point = np.asarray(SMALL.group.start(key, 1)[0]) + 3.0
    energy = by_images(point, SMALL)
    assert float(log_density(point)) == pytest.approx(-energy / 0.85, rel=1e-8)
    per_particle, pressure = (
        z[0] for z in jax.jit(lambda x: SMALL.energy_and_pressure(x))(point[None])
    )
    more = SMALL.density / 2 * tail(SMALL, pair_energy)
    assert float(per_particle) == pytest.approx(energy / 20 + more, rel=1e-8)
    # P = rho T - dU / dV, with the cut-off scaled as well: it takes no part.
    step, volume = 1e-4, SMALL.group.volume
    ends = [by_images(point, SMALL, 1 + s) for s in (step, -step)]
    slope = (ends[0] - ends[1]) / (volume * ((1 + step) ** 3 - (1 - step) ** 3))
    force = lambda r: r * 4 * (-12 * r**-13 + 6 * r**-7)
    more = -(SMALL.density**2) / 6 * tail(SMALL, force)
    expected = SMALL.density * SMALL.temperature - slope + more
    assert float(pressure) == pytest.approx(expected, rel=1e-5)


def test_force_is_minus_the_gradient_of_the_energy(key):
    point, along = SMALL.group.start(key, 2)
    force = jax.jit(jax.grad(SMALL.log_density))(point)
    ends = [log_density(point + s * along) for s in (1e-6, -1e-6)]
    assert float(np.sum(force * along)) == pytest.approx(
        float(ends[0] - ends[1]) / 2e-6, rel=1e-4
    )
    assert np.allclose(np.sum(force, axis=0), 0, atol=1e-8)


def test_a_dilute_gas_has_the_energy_of_its_second_virial_coefficient(key):
    target = LennardJonesFluid(16, density=0.02, temperature=2.0, cutoff=3.0)
    weighted = lambda r: 4 * np.pi * r**2 * pair_energy(r) * np.exp(-pair_energy(r) / 2)
    mean = 15 / 2 / target.group.volume * quad(weighted, 0.7, 3.0)[0]
    shape, energy = (512, 16, 3), lambda x: -2.0 * target.log_density(x) / 16
    points = target.side * jr.uniform(key, shape)  # without interaction
    free = jax.jit(jax.vmap(energy))(points)
    weights = np.exp(-16 * (np.asarray(free) - np.min(free)) / 2)
    found = np.sum(weights * free) / np.sum(weights)
    spread = np.asarray(free)[np.asarray(free) < 1].std()
    assert abs(found - mean) < 5 * spread / 512**0.5


def test_samples_are_of_the_state_point(key):
    target = LennardJonesFluid(32, density=0.05, temperature=2.0, cutoff=3.0)
    points = target.sample(key, 96, num_steps=60)
    assert points.shape == (96, 32, 3)
    assert np.all((points >= 0) & (points < target.side))
    energies = np.asarray(target.energy_and_pressure(points)[0])
    weighted = lambda r: 4 * np.pi * r**2 * pair_energy(r) * np.exp(-pair_energy(r) / 2)
    mean = 31 / 2 / target.group.volume * quad(weighted, 0.7, 3.0)[0]
    mean += 0.025 * tail(target, pair_energy)
    error = energies.std() / 96**0.5
    assert abs(energies.mean() - mean) < 4 * error + 0.05 * abs(mean)  # third virial
    assert abs(energies.mean()) > 10 * error


def test_a_cutoff_beyond_half_the_side_is_refused():
    with pytest.raises(ValueError, match=r"LennardJonesFluid needs `cutoff`.*4.319"):
        LennardJonesFluid(cutoff=4.4)
    with pytest.raises(ValueError, match="`density` > 0"):
        LennardJonesFluid(density=0.0)
