"""Annealed sequential Monte Carlo against closed forms, with broken twins."""

import dataclasses

import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from modes_by_hand import LOG_Z, two_modes, WEIGHT

from equistein.samplers import _annealed_smc, AnnealedSMC, MALA, Normal, run
from equistein.samplers._ladder import next_temperature, systematic_resampling

SAMPLER = AnnealedSMC(
    MALA(0.3), reference=Normal(jnp.zeros(2), 4.0), num_runs=8, num_moves=2
)
NUM, STEPS = 2_048, 24


def annealed(seed, num_steps=STEPS, sampler=SAMPLER):
    return run(
        jr.key(seed), sampler, two_modes, 4 * jr.normal(jr.key(9), (NUM, 2)),
        num_steps=num_steps, record_every=1,
    )  # fmt: skip


@pytest.fixture(scope="module")
def samples():
    return annealed(0)


def error_of_share(samples):
    """Return how far the lighter mode's share is off, in its standard errors."""
    first = np.asarray(samples.particles)[:, 0] > 0
    shares = first.reshape(SAMPLER.num_runs, -1).mean(axis=1)
    return abs(shares.mean() - WEIGHT) / (shares.std(ddof=1) / len(shares) ** 0.5)


@pytest.mark.slow
def test_particles_hold_both_modes_by_their_weights(samples):
    assert error_of_share(samples) < 4.5
    assert np.all(samples.summary["inverse_temperatures"] == 1)
    assert np.allclose(samples.summary["weights"], 1 / NUM)


@pytest.mark.slow
def test_log_normalizer_is_within_its_error(samples):
    found = samples.summary
    assert found["log_z_error"] < 0.1
    assert abs(found["log_z"] - LOG_Z) < 4.5 * found["log_z_error"]
    assert found["log_z_of_runs"].shape == (8,)


@pytest.mark.slow
def test_the_effective_size_is_kept_near_what_was_asked(samples):
    rising = samples.history["inverse_temperature"]
    assert np.all(np.diff(rising) >= 0)
    assert rising[0] < 0.1
    assert rising[-1] == 1


@pytest.mark.slow
def test_steps_that_run_out_leave_a_hotter_density_and_say_so():
    found = annealed(0, num_steps=3).summary
    assert np.all(found["inverse_temperatures"] < 0.9)
    assert np.isclose(found["weights"].sum(), 1)
    assert not np.allclose(found["weights"], 1 / NUM)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:AnnealedSMC")
def test_resampling_without_weights_is_noticed(monkeypatch, fresh_code):
    monkeypatch.setattr(
        _annealed_smc,
        "systematic_resampling",
        lambda key, weights: jnp.arange(len(weights)),
    )
    broken = annealed(0, sampler=dataclasses.replace(SAMPLER, ess_fraction=0.5))
    assert error_of_share(broken) > 4.5


@pytest.mark.slow
@pytest.mark.parametrize("is_right", [True, False])
def test_pilots_go_on_until_they_spread_no_more(is_right, monkeypatch, fresh_code):
    def banana(point):  # y has a width of 14.3
        x, y = point
        return -((1 - x) ** 2) / 20 - 5 * (y - x**2) ** 2

    if not is_right:
        monkeypatch.setattr(_annealed_smc, "_PILOTS", 1)
    start = 2 * jr.normal(jr.key(1), (2048, 2))
    state = run(jr.key(0), AnnealedSMC(), banana, start, num_steps=200).state
    reference = state.reference.metric
    assert (np.sqrt(reference.covariance[1, 1]) > 1.5 * 14.3) == is_right
    # The steps along the path are more than by default, and still enough.
    assert state.ess_fraction > 0.95
    assert np.all(state.inverse_temperatures == 1)


@pytest.mark.slow
@pytest.mark.parametrize("is_right", [True, False])
@pytest.mark.filterwarnings("ignore:AnnealedSMC")
def test_langevin_steps_of_many_lengths_keep_a_narrow_mode(is_right, monkeypatch):
    def widths(x):  # 10 dimensions; the mode of width 1/2 has a weight of .7
        wide = -jnp.sum((x - 0.95) ** 2) / 2 + np.log(0.3)
        narrow = -jnp.sum((x + 0.95) ** 2) * 2 + np.log(0.7) + 10 * np.log(2)
        return jnp.logaddexp(wide, narrow)

    if not is_right:
        monkeypatch.setattr(MALA, "varied", lambda self: self)
    start = 2 * jr.normal(jr.key(1), (2048, 10))
    samples = run(jr.key(0), AnnealedSMC(MALA(0.1)), widths, start, num_steps=400)
    share = np.mean(samples.particles.sum(axis=1) < 0)
    assert (abs(share - 0.7) < 0.12) == is_right


def test_particles_must_divide_among_the_runs(key):
    with pytest.raises(ValueError, match="`particles`"):
        run(key, SAMPLER, two_modes, jr.normal(key, (20, 2)), num_steps=1)


def test_next_temperature_meets_the_conditional_effective_share(key):
    ratios, log_weights = 30 * jr.normal(key, (256,)), jnp.full(256, -jnp.log(256.0))
    beta = next_temperature(ratios, log_weights, jnp.array(0.2), 0.9)
    weights = np.exp((beta - 0.2) * ratios)
    assert np.isclose(weights.mean() ** 2 / (weights**2).mean(), 0.9, atol=1e-6)
    flat = next_temperature(0.01 * ratios, log_weights, jnp.array(0.2), 0.9)
    assert flat == 1


def test_systematic_choice_is_by_weight(key):
    weights = np.repeat([0.5, 0.0, 0.3, 0.2], 5) / 5
    counts = np.zeros(20)
    for k in jr.split(key, 200):
        chosen = np.asarray(systematic_resampling(k, jnp.asarray(weights)))
        each = np.bincount(chosen, minlength=20)
        assert np.all(np.abs(each - 20 * weights) < 1)
        counts += each
    assert np.allclose(counts / 200 / 20, weights, atol=0.02)
    assert np.all(counts[5:10] == 0)
