import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
import scipy.stats

from equistein.samplers import Langevin, MALA, Normal, run, suppress_warnings
from equistein.targets import DoubleWell, LennardJones

CHAINS = 4_000


def bowl(x):
    return -0.5 * jnp.sum(x**2)


def far_from_normal(samples):
    """Return errors of variance, and Kolmogorov's distance: 2.2 is 1 of 8 000 times."""
    x = np.asarray(samples.particles).ravel()
    variance = abs(np.mean(x**2) - 1) / (2 / len(x)) ** 0.5
    return variance, scipy.stats.kstest(x, "norm").statistic * len(x) ** 0.5


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sampler", "passes"),
    [
        (MALA(1.5), True),
        (MALA(1.5, score_clip=0.5), True),
        (MALA(0.1, num_adapt=100), True),
        # Without the correction the variance is 1 / (1 - eta / 2) = 4.
        (Langevin(1.5), False),
        (Langevin(1.5, score_clip=0.5), False),
        # Annealed, the law is that of the last temperature: here a half.
        (MALA(1.5, annealing=lambda step: 0.5), False),
    ],
)
def test_law_is_exact_whatever_the_step(sampler, passes, key):
    start = 3 * jr.normal(key, (CHAINS, 1))
    samples = run(key, sampler, bowl, start, num_steps=150, record_every=150)
    variance, distance = far_from_normal(samples)
    assert (variance < 5 and distance < 2.2) == passes


@pytest.mark.parametrize(
    ("sampler", "passes"),
    [(MALA(0.8, score_clip=0.3), True), (Langevin(0.8, score_clip=0.3), False)],
)
def test_exact_samples_stay_exact_with_a_clipped_drift(sampler, passes, key):
    start = jr.normal(key, (CHAINS, 1))
    samples = run(key, sampler, bowl, start, num_steps=20, record_every=20)
    variance, distance = far_from_normal(samples)
    assert (variance < 5 and distance < 2.2) == passes


@pytest.mark.slow
def test_annealed_chains_have_the_law_of_their_temperature(key):
    start = jr.normal(key, (CHAINS, 1))
    sampler = MALA(0.8, annealing=lambda step: 0.25)
    samples = run(key, sampler, bowl, start, num_steps=100, record_every=100)
    assert np.all(samples.history["inverse_temperature"] == 0.25)
    spread = np.mean(samples.particles**2) * 0.25
    assert abs(spread - 1) < 5 * (2 / CHAINS) ** 0.5


@pytest.mark.parametrize("acceptance", [0.574, 0.8])
@pytest.mark.parametrize(
    "step_size", [pytest.param(0.01, marks=pytest.mark.slow), 30.0]
)
def test_adapted_acceptance_is_the_one_asked_for(acceptance, step_size, key):
    start = jr.normal(key, (256, 6))
    sampler = MALA(step_size, num_adapt=300, acceptance=acceptance)
    samples = run(key, sampler, bowl, start, num_steps=400, record_every=1)
    settled = samples.history["acceptance"][300:]
    # The mean of probabilities of 256 chains; the step is found up to their noise.
    assert abs(settled.mean() - acceptance) < 0.03
    sizes = samples.history["step_size"]
    assert np.isclose(sizes[0], step_size)
    assert len(set(sizes[300:])) == 1
    assert len(set(sizes[:300])) > 200


@pytest.mark.slow
def test_number_of_adapting_steps_may_be_traced(key):
    start = jr.normal(key, (16, 2))
    ends = [
        run(key, MALA(0.3, num_adapt=num), bowl, start, num_steps=6).particles
        for num in (4, jnp.array(4))
    ]
    assert np.array_equal(*ends)


@pytest.mark.parametrize("split", [1, 3, 7])
def test_going_on_gives_the_numbers_of_a_straight_run(split, key):
    # Also while the step adapts, and right after the first step.
    start = jr.normal(key, (16, 2))
    sampler = MALA(0.3, num_adapt=6, score_clip=1.0)
    straight = run(key, sampler, bowl, start, num_steps=9)
    first = run(key, sampler, bowl, start, num_steps=split)
    second = run(key, sampler, bowl, num_steps=9 - split, initial_state=first.state)
    assert np.array_equal(second.particles, straight.particles)
    assert second.state.parameters == straight.state.parameters


def test_first_move_by_hand(key):
    x = jnp.array([[0.7, -0.2]])
    sampler = MALA(0.4)
    state, info = sampler.step(key, sampler.init(x, bowl), bowl)
    assert info.log_density == bowl(x[0])
    assert np.isclose(info.step_size, 0.4)
    noise_key, accept_key = jr.split(key)
    noise = 0.8**0.5 * jr.normal(noise_key, (1, 2))[0]
    there = 0.6 * x[0] + noise
    back = x[0] - 0.6 * there
    log_ratio = bowl(there) - bowl(x[0]) + (noise @ noise - back @ back) / 1.6
    chance = jnp.exp(jnp.minimum(log_ratio, 0))
    assert np.isclose(info.acceptance, chance)
    taken = jr.uniform(accept_key, (1,))[0] < chance
    assert np.allclose(state.particles[0], jnp.where(taken, there, x[0]))


def test_chains_are_independent(key):
    x = jr.normal(key, (8, 2))
    sampler = MALA(0.3)
    step = jax.jit(
        lambda x: sampler.step(key, sampler.init(x, bowl), bowl)[0].particles
    )
    others = np.arange(8) != 3
    assert np.array_equal(step(x.at[3].add(5.0))[others], step(x)[others])


@pytest.mark.slow
def test_a_point_without_density_is_never_entered(key):
    # A uniform law on [0, 1]: outside the density or its score is no number.
    inside = lambda x: (x[0] > 0) & (x[0] < 1)
    box = lambda x: jnp.where(inside(x), 0.0 * x[0], -jnp.inf)
    pole = lambda x: jnp.where(inside(x), 0.0 * x[0], jnp.inf)
    root = lambda x: jnp.sum(0.0 * jnp.sqrt(x) + 0.0 * jnp.sqrt(1 - x))
    start = jr.uniform(key, (CHAINS, 1), minval=0.2, maxval=0.8)
    for density in (box, pole, root):
        with suppress_warnings():
            samples = run(key, MALA(0.1), density, start, num_steps=60)
        assert "exactly zero at 4000 of 4000" in samples.warnings[0]
        x = np.asarray(samples.particles)[:, 0]
        assert np.all((x > 0) & (x < 1))
        assert scipy.stats.kstest(x, "uniform").statistic * CHAINS**0.5 < 2.2


@pytest.mark.slow
def test_chains_stay_on_the_subspace_with_its_law(key):
    group = DoubleWell().group
    target = Normal(jnp.zeros((4, 2)), 2.0, group)
    start = jr.normal(key, (CHAINS, 4, 2)) + 1  # off center
    sampler = MALA(3.0, project=group.project)
    samples = run(key, sampler, target.log_density, start, num_steps=100)
    x = np.asarray(samples.particles)
    assert np.max(np.abs(x.mean(axis=1))) < 1e-10
    squares = np.sum(x**2, axis=(1, 2)) / 2.0**2
    assert abs(squares.mean() - 6) < 5 * (2 * 6 / CHAINS) ** 0.5
    assert scipy.stats.kstest(squares, "chi2", (6,)).pvalue > 1e-6


@pytest.mark.slow
@pytest.mark.parametrize(("score_clip", "passes"), [(50.0, True), (None, False)])
def test_a_clipped_drift_comes_down_from_overlaps(score_clip, passes, key):
    target = LennardJones()
    start = target.start(key, 16)  # particles lie on one another
    sampler = MALA(1e-3, score_clip=score_clip, project=target.group.project)
    with suppress_warnings():
        samples = run(key, sampler, target.log_density, start, num_steps=300)
    assert (samples.history["log_density"][-1] > 0) == passes
    assert bool(samples.warnings) != passes
