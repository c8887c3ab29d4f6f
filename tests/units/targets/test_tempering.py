import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from equistein.targets import DoubleWell, parallel_tempering

TARGET = DoubleWell()
LADDERS, SAMPLES = 32, 40


def temper(seed, coldest=1.0, hottest=0.1):
    """Run ladders on DW-4. Other temperatures need no other compilation."""
    start = TARGET.start(jr.key(seed), LADDERS)
    return parallel_tempering(
        jr.key(seed + 1), TARGET.log_density, start, TARGET.group,
        inverse_temperatures=jnp.geomspace(coldest, hottest, 7),
        num_steps=500, num_samples=SAMPLES, every=50, jump=3.0,
    )  # fmt: skip


@pytest.fixture(scope="module")
def tempered():
    return temper(0)


def energies_of(tempered):
    return -np.asarray(jax.vmap(jax.vmap(TARGET.log_density))(tempered.samples))


def test_samples_are_centred_clouds_of_each_ladder(tempered):
    assert tempered.samples.shape == (LADDERS, SAMPLES, 4, 2)
    assert np.allclose(np.mean(tempered.samples, axis=2), 0, atol=1e-10)
    flat = np.asarray(tempered.samples).reshape(LADDERS * SAMPLES, -1)
    assert len(np.unique(flat, axis=0)) > 0.99 * len(flat)


def test_langevin_moves_are_accepted_as_often_as_asked_for(tempered):
    assert tempered.acceptance.shape == (7,)
    assert np.allclose(tempered.acceptance, 0.6, atol=0.05)


def test_some_swaps_succeed_and_the_more_the_closer_the_temperatures(tempered):
    assert tempered.swaps.shape == (6,)
    assert np.all((tempered.swaps > 0.3) & (tempered.swaps < 0.95))
    assert np.all(temper(2, hottest=0.9).swaps > 0.9)


def distance_of_mean_energy(tempered):
    """Return how far the mean energy is from the exact one, in standard errors.

    The error is that of the independent ladders; the exact mean is of the findings,
    section 3.
    """
    means = energies_of(tempered).mean(axis=1)
    return abs(means.mean() + 22.539) / (means.std(ddof=1) / LADDERS**0.5)


def test_mean_energy_is_the_exact_one(tempered):
    assert distance_of_mean_energy(tempered) < 4
    assert abs(energies_of(tempered).std() - 1.906) < 0.2


def test_mean_energy_tells_a_wrong_temperature():
    assert distance_of_mean_energy(temper(4, coldest=0.8)) > 4


def disagreement(tempered):
    """Return the variance of the ladders' means, in that of independent samples."""
    energies = energies_of(tempered)
    within = energies.var(axis=1, ddof=1).mean() / SAMPLES
    return energies.mean(axis=1).var(ddof=1) / within


def test_ladders_agree_as_if_their_samples_were_independent(tempered):
    # A chi-square law of 31 degrees of freedom, over 31.
    assert abs(disagreement(tempered) - 1) < 4 * (2 / (LADDERS - 1)) ** 0.5


def test_ladders_that_are_cold_throughout_disagree():
    # Each stays in the minimum it fell into.
    frozen = temper(6, coldest=20.0, hottest=10.0)
    assert disagreement(frozen) > 1 + 4 * (2 / (LADDERS - 1)) ** 0.5


def test_the_same_key_gives_the_same_samples_and_ladders_differ(tempered):
    assert np.array_equal(temper(0).samples, tempered.samples)
    first, second = tempered.samples[:2]
    assert not np.allclose(first, second)


def test_one_temperature_is_a_chain_without_swaps(key):
    bowl = lambda x: -0.5 * jnp.sum(x**2)
    group = DoubleWell(2, 1).group
    found = parallel_tempering(
        key, bowl, jnp.zeros((512, 2, 1)), group,
        inverse_temperatures=jnp.ones(1),
        num_steps=200, num_samples=4, every=20, jump=1.0,
    )  # fmt: skip
    assert found.swaps.shape == (0,)
    # On the subspace (t, -t) / sqrt(2) the law of t is normal.
    square = np.sum(np.asarray(found.samples) ** 2, axis=(2, 3))
    assert abs(square.mean() - 1) < 5 * (2 / square.size) ** 0.5
