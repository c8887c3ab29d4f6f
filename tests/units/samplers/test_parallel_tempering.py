"""Parallel tempering against closed forms, each with a broken twin."""

import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from modes_by_hand import GAP, LOG_Z, two_modes, WEIGHT

from equistein.groups import PointCloud
from equistein.samplers import (
    _ladder,
    _parallel_tempering,
    Geometric,
    GeometricPath,
    load_samples,
    MALA,
    Normal,
    ParallelTempering,
    PathWalker,
    run,
    suppress_warnings,
    temperatures,
)
from equistein.samplers._ladder import (
    _note_arrivals,
    equal_rejection,
    ess_fraction,
    Replicas,
)

SAMPLER = ParallelTempering(
    MALA(0.3), num_temperatures=5, num_adapt=256, reference=Normal(jnp.zeros(2), 4.0)
)
CHAINS, STEPS = 128, 512


def starts(key):
    """All chains begin in the lighter mode."""
    return GAP + jr.normal(key, (CHAINS, 2))


@pytest.fixture(scope="module")
def tempered():
    start = starts(jr.key(0))
    with suppress_warnings():  # of a start that is narrow on purpose
        return run(jr.key(1), SAMPLER, two_modes, start, num_steps=STEPS, keep=CHAINS)


def share_of_the_first(points):
    """Return the lighter mode's share and error, of points (record, chain, 2)."""
    shares = np.mean(np.asarray(points)[..., 0] > 0, axis=0)
    return shares.mean(), shares.std(ddof=1) / len(shares) ** 0.5


@pytest.mark.slow
def test_chains_that_began_in_one_mode_hold_both_by_their_weights(tempered):
    late = tempered.history["particles"][-50:]
    share, error = share_of_the_first(late)
    assert abs(share - WEIGHT) < 4 * error
    assert error < 0.03
    # In the first mode the variance of a coordinate is 1.
    first = late[late[..., 0] > 0]
    assert abs(first.var() - 1) < 0.15


@pytest.mark.slow
def test_log_normalizer_is_within_its_error(tempered):
    found = tempered.summary
    assert found["log_z_error"] < 0.05
    assert abs(found["log_z"] - LOG_Z) < 4 * found["log_z_error"]


@pytest.mark.slow
def test_a_ladder_of_kelvins_is_relative_to_the_first():
    betas = temperatures(300, 1200, 3)
    assert np.allclose(betas, [1, 1 / 2, 1 / 4])
    sampler = ParallelTempering(MALA(0.1), betas)
    assert not sampler.adapts_ladder
    assert np.allclose(300 / sampler.inverse_temperatures, [300, 600, 1200])


@pytest.mark.slow
def test_ladder_adapts_until_all_neighbors_refuse_equally(tempered):
    rejections = tempered.summary["rejections"]
    assert np.all(np.abs(rejections - rejections.mean()) < 0.1)
    assert np.isclose(tempered.summary["barrier"], rejections.sum())
    ladders = tempered.history["inverse_temperatures"]
    steps = tempered.history["step"]
    assert not np.allclose(ladders[0], ladders[-1])
    assert np.array_equal(ladders[steps >= 204][0], ladders[-1])
    assert np.all(np.diff(ladders, axis=1) < 0)
    assert np.array_equal(np.unique(ladders[:, [0, -1]]), [0, 1])


@pytest.mark.slow
def test_points_travel_to_the_reference_and_back(tempered):
    trips = tempered.summary["round_trips"]
    assert trips.shape == (CHAINS,)
    assert trips.mean() > STEPS / 50


def wrong_sign(walkers, betas):
    ratio = walkers.log_ratio
    gain = (betas[:-1] - betas[1:])[:, None] * (ratio[:-1] - ratio[1:])
    return jnp.exp(jnp.minimum(gain, 0))


@pytest.mark.slow
def test_swaps_of_the_wrong_sign_are_noticed(monkeypatch, fresh_code):
    monkeypatch.setattr(_ladder, "swap_chances", wrong_sign)
    start = starts(jr.key(0))
    other = eqx.tree_at(
        lambda s: s.inverse_temperatures, SAMPLER, jnp.array([1.0, 0.5, 0.2, 0.05, 0])
    )
    with suppress_warnings():  # hardly any swap is made
        broken = run(jr.key(1), other, two_modes, start, num_steps=STEPS, keep=CHAINS)
    share, error = share_of_the_first(broken.history["particles"][-50:])
    assert abs(share - WEIGHT) > 4 * error


def test_a_swap_is_in_detailed_balance_on_an_enumerable_case():
    """Of two temperatures and three points: flows of each pair of states agree."""
    log_p, log_b = jnp.log(jnp.array([[0.2, 0.5, 0.3], [0.6, 0.3, 0.1]]))
    betas, blank = jnp.array([1.0, 0.25]), jnp.zeros(2)

    def chance(cold, hot):
        at = lambda i: PathWalker(blank, log_b[i], blank, log_p[i], blank)
        both = jax.tree.map(
            lambda *leaves: jnp.stack(leaves)[:, None], at(cold), at(hot)
        )
        return float(_ladder.swap_chances(both, betas)[0, 0])

    def joint(cold, hot):
        at = lambda i, beta: np.exp((1 - beta) * log_b[i] + beta * log_p[i])
        return at(cold, 1.0) * at(hot, 0.25)

    for cold, hot in itertools.product(range(3), repeat=2):
        there = joint(cold, hot) * chance(cold, hot)
        back = joint(hot, cold) * chance(hot, cold)
        assert np.isclose(there, back)
        twin = joint(cold, hot) * chance(hot, cold)
        assert cold == hot or not np.isclose(twin, joint(hot, cold) * chance(cold, hot))


@pytest.mark.slow
def test_values_of_a_walker_hold_at_every_temperature(tempered):
    state = tempered.state
    path = GeometricPath(two_modes, SAMPLER.reference)
    walkers = state.replicas.walker
    fresh = jax.jit(jax.vmap(jax.vmap(path.evaluate)))(walkers.point)
    assert all(
        np.allclose(a, b)
        for a, b in zip(jax.tree.leaves(walkers), jax.tree.leaves(fresh), strict=True)
    )


@pytest.mark.slow
def test_samples_that_were_saved_go_on_as_if_they_had_not(tempered, tmp_path):
    path = tmp_path / "samples.npz"
    tempered.save(path)
    loaded = load_samples(path, SAMPLER)
    straight, resumed = (
        run(jr.key(3), SAMPLER, two_modes, num_steps=2, initial_state=s.state)
        for s in (tempered, loaded)
    )
    assert np.array_equal(straight.particles, resumed.particles)
    assert np.array_equal(loaded.summary["log_z"], tempered.summary["log_z"])
    assert np.array_equal(loaded.history["step"], tempered.history["step"])
    assert load_samples(path).state is None
    with pytest.raises(ValueError, match="state of another sampler"):
        load_samples(path, MALA(0.1))
    np.savez(path, x=np.zeros(3))
    with pytest.raises(ValueError, match="holds a samples"):
        load_samples(path)


def test_clouds_stay_on_their_subspace(key):
    group = PointCloud((0, 0, 0), 2)
    start = jax.vmap(group.project)(jr.normal(key, (8, 3, 2)))
    bowl = lambda x: -0.5 * jnp.sum(x**2)
    # A ladder that ends above 0 has no reference.
    sampler = ParallelTempering(MALA(0.1, project=group.project), [1.0, 0.4, 0.1])
    samples = run(key, sampler, bowl, start, num_steps=5)
    assert np.allclose(samples.state.replicas.walker.point.mean(axis=2), 0, atol=1e-12)
    assert "log_z" not in samples.summary
    assert samples.history["evaluations"][-1] == 1 + 3 * 5


@pytest.mark.slow
def test_walls_are_kept(key):
    """A density that is zero for x < 0: the reference's points there never swap in."""
    half = lambda x: jnp.where(x[0] > 0, -0.5 * jnp.sum(x**2), -jnp.inf)
    start = jnp.abs(jr.normal(key, (64, 2)))
    sampler = ParallelTempering(
        MALA(0.3), [1.0, 0.5, 0.0], num_adapt=50, reference=Normal(jnp.zeros(2), 2.0)
    )
    samples = run(key, sampler, half, start, num_steps=400)
    assert np.all(samples.particles[:, 0] > 0)
    found = samples.summary
    exact = np.log(np.pi)  # half of 2 pi
    assert abs(found["log_z"] - exact) < 4 * found["log_z_error"] + 0.02


@pytest.mark.parametrize(
    "ladder",
    [[1.0], [1.0, 1.0, 0.0], [0.9, 0.0], [1.0, 0.5, -0.1], [1.0, float("nan")]],
)
def test_ladders_that_make_no_sense_are_refused(ladder):
    with pytest.raises(ValueError, match="inverse_temperatures"):
        ParallelTempering(MALA(0.1), ladder)


def test_settings_that_do_not_go_together_are_refused():
    with pytest.raises(ValueError, match="`num_adapt`"):
        ParallelTempering(MALA(0.1), [1.0, 0.0], num_adapt=-1)
    with pytest.raises(ValueError, match="`annealing`"):
        ParallelTempering(MALA(0.1, annealing=Geometric(9)))
    with pytest.raises(ValueError, match="reference"):
        ParallelTempering(MALA(0.1), [1.0, 0.5], reference=Normal(jnp.zeros(2), 1.0))


def test_what_cannot_be_walked_is_refused_before_work_begins(key):
    sampler, start = SAMPLER, jr.normal(key, (4, 2))
    spike = lambda x: jnp.where(x[0] > 3, jnp.inf, -jnp.sum(x**2))
    with pytest.raises(ValueError, match="infinite or NaN at"):
        run(key, sampler, spike, start, num_steps=1)
    wall = lambda x: jnp.where(x[0] > 0, -jnp.sum(x**2), -jnp.inf)
    with pytest.raises(ValueError, match="must be finite at the start"):
        run(key, sampler, wall, -jnp.abs(start), num_steps=1)
    far = lambda x: jnp.where(x[0] > 1e3, -jnp.sum(x**2), -jnp.inf)
    with pytest.raises(ValueError, match="meet its support"):
        run(key, sampler, far, 2e3 + start, num_steps=1)
    group = PointCloud((0, 0), 1)
    other = ParallelTempering(
        MALA(0.1, project=group.project), reference=Normal(jnp.zeros((2, 1)), 1.0)
    )
    bowl = lambda x: -0.5 * jnp.sum(x**2)
    with pytest.raises(ValueError, match="on the subspace of its chains"):
        run(key, other, bowl, jnp.array([[[1.0], [-1.0]]] * 4), num_steps=1)


def test_a_ladder_of_equal_rejection_divides_the_barrier():
    # The barrier is 0, .3, .4; its half is two thirds of the way to .5.
    found = equal_rejection(jnp.array([1.0, 0.5, 0.0]), jnp.array([0.3, 0.1]))
    assert np.allclose(found, [1, 2 / 3, 0])
    # The first one is closest at the hot end.
    first = ParallelTempering(num_temperatures=3).inverse_temperatures
    assert np.allclose(first, [1, 1 / 16, 0])


def test_the_effective_share_of_equal_weights_is_all_of_them():
    assert np.allclose(ess_fraction(jnp.zeros(5)), 1)
    one = jnp.array([0.0, -jnp.inf, -jnp.inf, -jnp.inf])
    assert np.allclose(ess_fraction(one), 1 / 4)


def test_a_journey_is_from_the_target_to_the_hot_end_and_back():
    heading = jnp.array([[0, 2, 1], [1, 0, 2], [0, 1, 2]])
    trips = jnp.array([[0, 3, 1], [1, 0, 0], [0, 0, 5]])
    evaluate = GeometricPath(two_modes, Normal(jnp.zeros(2), 1.0)).evaluate
    walker = jax.jit(jax.vmap(jax.vmap(evaluate)))(jnp.zeros((3, 3, 2)))
    found = _note_arrivals(Replicas(walker, heading, trips))
    assert np.array_equal(found.heading, [[1, 1, 1], [1, 0, 2], [0, 2, 2]])
    assert np.array_equal(found.round_trips, [[0, 4, 1], [1, 0, 0], [0, 0, 5]])


def banana(point):
    x, y = point
    return -((1 - x) ** 2) / 20 - 5 * (y - x**2) ** 2


@pytest.mark.slow
@pytest.mark.parametrize("resampled", [True, False])
def test_a_narrower_reference_sends_no_chains_into_the_tails(
    resampled, monkeypatch, fresh_code
):
    """Of all chains 1.2 % are beyond 2.5 widths; the twin lets them go where they are.

    Far out the new reference is almost zero, so that all swaps to the target succeed.
    """
    if not resampled:
        keep = lambda key, old, old_beta, new, beta: new
        monkeypatch.setattr(_parallel_tempering, "_resampled", keep)
    start = 2 * jr.normal(jr.key(3), (CHAINS, 2))
    sampler = ParallelTempering(num_adapt=1_500)
    with suppress_warnings():
        samples = run(jr.key(4), sampler, banana, start, num_steps=1_300, keep=CHAINS)
    x = np.asarray(samples.history["particles"])[-5:, :, 0]  # after the last round
    assert (np.mean(abs(x - 1) > 2.5 * 10**0.5) < 0.04) == resampled
