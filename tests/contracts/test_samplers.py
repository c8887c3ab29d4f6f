import blackjax
import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
import pytest

from equistein.features import SortedDistances
from equistein.groups import Cyclic, PointCloud
from equistein.kernels import (
    Equivariant,
    IMQ,
    measured_bandwidth,
    Median,
    Pullback,
    RBF,
)
from equistein.samplers import (
    AbstractSampler,
    advance,
    as_blackjax,
    Geometric,
    Langevin,
    MALA,
    NonFiniteError,
    Power,
    run,
    RunInterrupted,
    SVGD,
    vector_adam,
)
from equistein.targets import DoubleWell, RotatedGaussians

TARGET = RotatedGaussians(Cyclic(4))
log_density = TARGET.log_density
SAMPLERS = {  # adding a sampler to the library means adding a line here
    "svgd": SVGD(RBF(0.7), optax.sgd(0.1)),
    "adam": SVGD(IMQ(0.7), optax.adam(0.1)),
    "equivariant": SVGD(Equivariant(RBF(0.7), Cyclic(4)), vector_adam(0.1)),
    "median": SVGD(RBF(), optax.sgd(0.1)),
    "annealed": SVGD(RBF(0.7), vector_adam(0.1), annealing=Geometric(8)),
    "noisy": SVGD(RBF(0.7), optax.sgd(0.1), langevin=0.01, score_clip=5.0),
    "langevin": Langevin(0.05, score_clip=5.0),
    "mala": MALA(0.05, num_adapt=5, score_clip=5.0),
    "annealed mala": MALA(0.05, annealing=Geometric(8)),
}
NOISY = [SAMPLERS[name] for name in ("noisy", "langevin", "mala", "annealed mala")]
QUIET = {name: one for name, one in SAMPLERS.items() if one not in NOISY}
every_sampler = pytest.mark.parametrize(
    "sampler", SAMPLERS.values(), ids=SAMPLERS.keys()
)


def start(key, num=8, dtype=jnp.float64):
    return 2 * jr.normal(key, (num, 2), dtype)


@eqx.filter_jit
def one_step(sampler, key, state):
    return sampler.step(key, state, log_density)


@every_sampler
@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_step_gives_a_state_like_the_one_it_took(sampler, dtype, key):
    start_key, step_key = jr.split(key)
    x = start(start_key, dtype=dtype)
    state = sampler.init(x)
    assert np.array_equal(state.particles, x)
    assert state.step == 0
    new, info = one_step(sampler, step_key, state)
    kinds = [jax.tree.map(lambda a: (a.shape, a.dtype), s) for s in (state, new)]
    assert kinds[0] == kinds[1]
    assert new.particles.dtype == dtype
    assert new.step == 1
    assert not np.array_equal(new.particles, x)
    moved = np.asarray(new.particles) - np.asarray(x)
    assert np.isclose(info.update_norm, np.sqrt(np.sum(moved**2) / 8), rtol=1e-3)
    assert all(np.shape(leaf) == () for leaf in jax.tree.leaves(info))
    mean = np.mean(jax.vmap(log_density)(x))
    assert np.isclose(info.log_density, mean, rtol=1e-5)


@every_sampler
def test_run_is_init_and_steps(sampler, key):
    start_key, run_key = jr.split(key)
    x = start(start_key)
    state, infos = sampler.init(x), []
    for i in range(7):
        state, info = one_step(sampler, jr.fold_in(run_key, i), state)
        infos.append(info)
    samples = run(run_key, sampler, log_density, x, num_steps=7, record_every=1)
    assert np.allclose(samples.particles, state.particles, atol=1e-12)
    assert samples.num_steps == 7
    assert not samples.converged
    assert np.array_equal(samples.history["step"], np.arange(1, 8))
    for name, values in samples.history.items():
        if name != "step":
            assert np.allclose(values, [getattr(info, name) for info in infos])


@every_sampler
def test_going_on_gives_the_numbers_of_a_straight_run(sampler, key):
    start_key, run_key = jr.split(key)
    x = start(start_key)
    straight = run(run_key, sampler, log_density, x, num_steps=9, record_every=3)
    first = run(run_key, sampler, log_density, x, num_steps=6, record_every=3)
    second = run(
        run_key, sampler, log_density,
        num_steps=3, record_every=3, initial_state=first.state,
    )  # fmt: skip
    assert np.array_equal(second.particles, straight.particles)
    assert second.num_steps == 3
    assert np.array_equal(second.history["step"], [9])
    for name, values in straight.history.items():
        joined = np.concatenate([first.history[name], second.history[name]])
        assert np.array_equal(joined, values)


@every_sampler
def test_a_run_repeats_itself_with_the_same_key(sampler, key):
    x = start(key)
    ends = [
        run(k, sampler, log_density, x, num_steps=5, record_every=5).particles
        for k in (jr.key(0), jr.key(0), jr.key(1))
    ]
    assert np.array_equal(ends[0], ends[1])
    assert np.array_equal(ends[0], ends[2]) == (sampler not in NOISY)


# Where there is noise, each particle draws its own.
@pytest.mark.parametrize("sampler", QUIET.values(), ids=QUIET.keys())
def test_order_of_the_particles_does_not_matter(sampler, key):
    x = start(key)
    order = jnp.array([3, 1, 0, 2, 7, 5, 6, 4])
    straight, _ = one_step(sampler, key, sampler.init(x))
    shuffled, _ = one_step(sampler, key, sampler.init(x[order]))
    assert np.allclose(shuffled.particles, straight.particles[order], atol=1e-12)


@pytest.mark.parametrize("name", ["svgd", "equivariant", "median", "annealed"])
def test_turning_all_particles_turns_all_paths(name, key):
    sampler, group, x = SAMPLERS[name], Cyclic(4), start(key)
    move = lambda x: (
        run(key, sampler, log_density, x, num_steps=4, record_every=2).particles
    )
    straight = move(x)
    for element in group.elements()[1:]:
        turn = jax.vmap(lambda x, g=element: group.act(g, x))
        assert np.allclose(move(turn(x)), turn(straight), atol=1e-10)


def test_adam_is_tied_to_the_axes(key):
    # Turns by 45 degrees, which are a symmetry of the round Gaussian alone.
    cos = 0.5**0.5
    rotation = jnp.array([[cos, -cos], [cos, cos]])
    x, round_ = start(key), lambda x: -0.5 * jnp.sum(x**2)
    gaps = {}
    for name, optimizer in (("adam", optax.adam(0.1)), ("vector", vector_adam(0.1))):
        sampler = SVGD(RBF(0.7), optimizer)
        move = lambda x, sampler=sampler: (
            run(key, sampler, round_, x, num_steps=4, record_every=2).particles
        )
        gaps[name] = np.max(np.abs(move(x @ rotation.T) - move(x) @ rotation.T))
    assert gaps["vector"] < 1e-10
    assert gaps["adam"] > 1e-2


def test_density_is_not_traced_again_for_a_new_start_or_key(key):
    density = eqx.debug.assert_max_traces(lambda x: -jnp.sum(x**2), max_traces=8)
    sampler, traces = SAMPLERS["svgd"], set()
    for start_key, run_key in jr.split(key, (3, 2)):
        x = start(start_key)
        run(run_key, sampler, density, x, num_steps=40, record_every=10, check=False)
        traces.add(eqx.debug.get_num_traces(density))
    assert len(traces) == 1


# ------------------------------------------------------------ edges


def test_no_steps_give_the_start(key):
    x = start(key)
    samples = run(key, SAMPLERS["svgd"], log_density, x, num_steps=0)
    assert np.array_equal(samples.particles, x)
    assert samples.num_steps == 0
    assert not samples.converged
    assert samples.history == {} or len(samples.history["step"]) == 0


@pytest.mark.parametrize("kernel", [RBF(0.3), IMQ(0.3), RBF()])
def test_one_particle_climbs_the_density(kernel, key):
    x = start(key, num=1)
    sampler = SVGD(kernel, optax.sgd(0.1))
    samples = run(key, sampler, log_density, x, num_steps=3, record_every=1)
    climber = x[0]
    for _ in range(3):
        climber = climber + 0.1 * jax.grad(log_density)(climber)
    assert np.allclose(samples.particles[0], climber, atol=1e-12)


@every_sampler
@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_coinciding_particles_stay_finite(sampler, dtype, key):
    x = jnp.concatenate([jnp.zeros((4, 2), dtype), jnp.ones((4, 2), dtype)])
    state = sampler.init(x)
    for _ in range(3):
        state, _ = one_step(sampler, key, state)
    assert np.all(np.isfinite(state.particles))
    if sampler not in NOISY:
        assert np.allclose(state.particles[4:], state.particles[4:5])


def test_points_may_have_any_shape(key):
    x = jr.normal(key, (5, 2, 3, 2))
    cube = lambda x: -0.5 * jnp.sum(x**2)
    sampler = SVGD(RBF(), vector_adam(0.1), langevin=0.01, score_clip=5.0)
    samples = run(key, sampler, cube, x, num_steps=2, record_every=1)
    assert samples.particles.shape == x.shape


# ------------------------------------------------------------ the driver


@pytest.mark.parametrize(
    ("num_steps", "record_every", "steps"),
    [
        (10, 3, [3, 6, 9, 10]),
        (10, 5, [5, 10]),
        (3, 7, [3]),
        (7, None, [1, 2, 3, 4, 5, 6, 7]),
        (150, 70, [70, 140, 150]),  # longer than the chunks between looks
    ],
)
def test_history_holds_every_so_many_th_step_and_the_last(
    num_steps, record_every, steps, key
):
    x = start(key)
    samples = run(
        key, SAMPLERS["annealed"], log_density, x,
        num_steps=num_steps, record_every=record_every,
    )  # fmt: skip
    assert np.array_equal(samples.history["step"], steps)
    assert {len(values) for values in samples.history.values()} == {len(steps)}
    heat = [jnp.exp((1 - min((s - 1) / 8, 1)) * np.log(1e-3)) for s in steps]
    assert np.allclose(samples.history["inverse_temperature"], heat)


def test_history_has_a_hundred_entries_by_default(key):
    x = start(key)
    samples = run(key, SAMPLERS["svgd"], log_density, x, num_steps=300)
    assert np.array_equal(samples.history["step"], np.arange(3, 301, 3))


@pytest.mark.parametrize("record_every", [1, 7, 1_000])
def test_tolerance_ends_the_run_at_the_first_small_update(record_every, key):
    bowl = lambda x: -0.5 * jnp.sum(x**2)
    x = jnp.full((1, 2), 2.0)
    sampler = SVGD(RBF(1.0), optax.sgd(0.1))
    samples = run(
        key, sampler, bowl, x, num_steps=1_000, tol=1e-3, record_every=record_every
    )
    # Updates are 0.1 |x| = 0.2 sqrt(2) 0.9^i: below 1e-3 from i = 54 on.
    lengths = 0.2 * 2**0.5 * 0.9 ** np.arange(1_000)
    first = int(np.argmax(lengths < 1e-3)) + 1
    assert samples.converged
    assert first <= samples.num_steps <= first + 1  # one more to record
    assert samples.history["step"][-1] == samples.num_steps
    assert samples.history["update_norm"][-1] < 1e-3
    assert np.allclose(samples.particles, 2 * 0.9**samples.num_steps, atol=1e-10)


def test_one_small_update_ends_the_run_even_if_the_next_is_large(key):
    bowl = lambda x: -0.5 * jnp.sum(x**2)
    rate = lambda step: jnp.where(step == 5, 0.0, 0.1)
    sampler, x = SVGD(RBF(1.0), optax.sgd(rate)), jnp.full((1, 2), 2.0)
    samples = run(key, sampler, bowl, x, num_steps=40, tol=1e-3, record_every=20)
    assert samples.converged
    assert 6 <= samples.num_steps <= 7
    assert np.array_equal(samples.history["step"], [samples.num_steps])


def test_a_run_that_does_not_reach_the_tolerance_has_not_converged(key):
    x = start(key)
    samples = run(key, SAMPLERS["svgd"], log_density, x, num_steps=20, tol=1e-12)
    assert not samples.converged
    assert samples.num_steps == 20


def test_a_small_tolerance_changes_no_step(key):
    x, sampler = start(key), SAMPLERS["equivariant"]
    free = run(key, sampler, log_density, x, num_steps=100, record_every=30)
    watched = run(
        key, sampler, log_density, x, num_steps=100, record_every=30, tol=1e-14
    )
    assert np.allclose(free.particles, watched.particles, atol=1e-10)
    assert np.array_equal(free.history["step"], watched.history["step"])


def square_root_ridge(x):
    return -jnp.sum(jnp.sqrt(1 - x))


@pytest.mark.parametrize("record_every", [1, 5, 1_000])
def test_a_run_that_leaves_the_numbers_stops_at_the_last_good_step(record_every, key):
    path = [np.zeros(())]  # the particle climbs to 1 and beyond
    while path[-1] < 1:
        path.append(path[-1] + 0.01 * 0.5 / np.sqrt(1 - path[-1]))
    step = len(path)
    sampler = SVGD(RBF(1.0), optax.sgd(0.01))
    with pytest.raises(NonFiniteError, match=f"in step {step};") as caught:
        run(
            key, sampler, square_root_ridge, jnp.zeros((1, 1)),
            num_steps=1_000, record_every=record_every,
        )  # fmt: skip
    assert caught.value.step == step
    assert caught.value.samples.num_steps == step - 1
    assert np.allclose(caught.value.samples.particles, path[-1], atol=1e-10)
    history = caught.value.samples.history
    assert np.all(history["step"] < step)
    assert np.all(np.isfinite(history["update_norm"]))


def test_an_interrupted_run_holds_what_it_did_and_can_go_on(key, monkeypatch):
    x, sampler = start(key), SAMPLERS["noisy"]
    options = {"num_steps": 40, "record_every": 2}
    straight = run(key, sampler, log_density, x, **options)
    calls = []

    def interrupted(*arguments):
        calls.append(1)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return advance(*arguments)

    import equistein.samplers._run as driver

    advance = driver._advance
    monkeypatch.setattr(driver, "_advance", interrupted)
    with pytest.raises(RunInterrupted, match="after 6 steps") as caught:
        run(key, sampler, log_density, x, **options)
    monkeypatch.undo()
    samples = caught.value.samples
    assert samples.num_steps == 6
    assert np.array_equal(samples.history["step"], [2, 4, 6])
    rest = run(
        key, sampler, log_density,
        num_steps=34, record_every=2, initial_state=samples.state,
    )  # fmt: skip
    assert np.array_equal(rest.particles, straight.particles)


def test_progress_is_shown_on_standard_error(key, capsys):
    run(key, SAMPLERS["svgd"], log_density, start(key), num_steps=5, progress=True)
    assert "5/5" in capsys.readouterr().err


# ------------------------------------------------------------ the loop


@every_sampler
def test_advance_takes_the_steps_that_run_takes(sampler, key):
    x = start(key)
    straight = run(key, sampler, log_density, x, num_steps=5, record_every=5)
    state = advance(key, sampler, log_density, sampler.init(x), 3)
    assert state.step == 3
    state = jax.jit(lambda s, n: advance(key, sampler, log_density, s, n))(state, 5)
    assert np.allclose(state.particles, straight.particles, atol=1e-12)
    assert advance(key, sampler, log_density, state, 4).step == 5


def test_advance_ends_at_the_first_small_update(key):
    bowl = lambda x: -0.5 * jnp.sum(x**2)
    sampler, x = SVGD(RBF(1.0), optax.sgd(0.1)), jnp.full((1, 2), 2.0)
    lengths = 0.2 * 2**0.5 * 0.9 ** np.arange(100)
    for tol in (1e-2, jnp.asarray(1e-2)):
        state = advance(key, sampler, bowl, sampler.init(x), 100, tol)
        assert state.step == np.argmax(lengths < 1e-2) + 1
    assert advance(key, sampler, bowl, sampler.init(x), 7, 1e-2).step == 7


@pytest.mark.parametrize("factor", [0.5, jnp.asarray(0.5)])
@every_sampler
def test_scaled_sampler_takes_steps_of_another_size(sampler, factor, key):
    x = start(key)
    same, small = sampler.scaled(1.0), sampler.scaled(2.0).scaled(factor / 4)
    straight, _ = one_step(sampler, key, sampler.init(x))
    unchanged, _ = one_step(same, key, same.init(x))
    assert np.allclose(unchanged.particles, straight.particles, atol=1e-12)
    shrunk, _ = one_step(small, key, small.init(x))
    gaps = [np.linalg.norm(s.particles - x) for s in (straight, shrunk)]
    assert gaps[1] < 0.6 * gaps[0]  # a quarter, or half of noise


def test_scaled_steps_by_hand(key):
    x = start(key)
    sampler = SVGD(RBF(0.7), optax.sgd(0.1), langevin=lambda step: 0.02)
    halved = SVGD(RBF(0.7), optax.sgd(0.05), langevin=0.01)
    expected, _ = one_step(halved, key, halved.init(x))
    scaled, _ = one_step(sampler.scaled(0.5), key, sampler.init(x))
    assert np.allclose(scaled.particles, expected.particles, atol=1e-12)
    assert Langevin(0.3).scaled(0.5).step_size == 0.15
    assert MALA(0.3).scaled(0.5).step_size == 0.15


class PlainState(eqx.Module):
    particles: jax.Array
    step: jax.Array


class PlainInfo(eqx.Module):
    log_density: jax.Array
    update_norm: jax.Array


class Ascent(AbstractSampler):
    """A user's own sampler: no more than the interface asks for."""

    def init(self, particles):
        return PlainState(particles, jnp.zeros((), int))

    def step(self, key, state, log_density):
        values, scores = jax.vmap(jax.value_and_grad(log_density))(state.particles)
        update = 0.1 * scores
        info = PlainInfo(jnp.mean(values), jnp.sqrt(jnp.mean(update**2)))
        return PlainState(state.particles + update, state.step + 1), info


def test_a_user_s_own_sampler_runs_and_goes_on(key):
    x, sampler = start(key), Ascent()
    straight = run(key, sampler, log_density, x, num_steps=5, tol=1e-9)
    first = run(key, sampler, log_density, x, num_steps=3)
    second = run(key, sampler, log_density, num_steps=2, initial_state=first.state)
    assert np.array_equal(second.particles, straight.particles)
    assert sampler.scaled(0.5) is sampler


# ------------------------------------------------------------ parts of the step


def test_repellers_join_the_sum_and_stay(key):
    x_key, y_key = jr.split(key)
    x, y = start(x_key), start(y_key, num=3)
    sampler = SAMPLERS["svgd"]
    repelled = sampler.with_repellers(y)
    state, _ = one_step(repelled, key, repelled.init(x))
    sources = jnp.concatenate([x, y])
    scores = jax.vmap(jax.grad(log_density))(sources)
    force = sampler.kernel.stein_force(x, sources, scores)
    assert np.allclose(state.particles, x + 0.1 * force, atol=1e-12)
    assert np.array_equal(repelled.repellers, y)
    samples = run(key, repelled, log_density, x, num_steps=1, record_every=1)
    assert np.allclose(samples.particles, state.particles, atol=1e-12)
    free = run(key, repelled.with_repellers(None), log_density, x, num_steps=1)
    alone = run(key, sampler, log_density, x, num_steps=1)
    assert np.array_equal(free.particles, alone.particles)


def test_repellers_are_projected(key):
    y = jr.normal(key, (3, 4, 2))
    kernel = Equivariant(RBF(0.5), PointCloud("CCCC", 2))
    sampler = SVGD(kernel, optax.sgd(0.1), repellers=y)
    centered = y - jnp.mean(y, axis=1, keepdims=True)
    assert np.allclose(sampler.repellers, centered)
    own = SVGD(RBF(), optax.sgd(0.1), repellers=y, project=lambda x: 0.5 * x)
    assert np.allclose(own.repellers, 0.5 * y)


def test_repellers_may_be_traced(key):
    x, y = start(key), start(jr.key(1), num=3)
    sampler = SAMPLERS["svgd"]

    @jax.jit
    def moved(x, y):
        repelled = sampler.with_repellers(y)
        return advance(key, repelled, log_density, repelled.init(x), 2).particles

    straight = run(key, sampler.with_repellers(y), log_density, x, num_steps=2)
    assert np.allclose(moved(x, y), straight.particles, atol=1e-12)


def test_a_particle_moves_away_from_a_repeller(key):
    flat = lambda x: -1e-6 * jnp.sum(x**2)
    samples = run(
        key, SVGD(RBF(1.0), optax.sgd(0.1), repellers=jnp.zeros((1, 2))), flat,
        jnp.array([[0.3, 0.0]]), num_steps=5,
    )  # fmt: skip
    assert samples.particles[0, 0] > 0.3


def test_annealing_scales_the_score(key):
    x = start(key)
    sampler = SVGD(RBF(0.7), optax.sgd(0.1), annealing=Power(10))
    scores = jax.vmap(jax.grad(log_density))(x)
    state = sampler.init(x)
    for beta in (0.0, 0.1):
        before = state.particles
        scores = jax.vmap(jax.grad(log_density))(before)
        force = sampler.kernel.stein_force(before, before, beta * scores)
        state, info = one_step(sampler, key, state)
        assert np.isclose(info.inverse_temperature, beta)
        assert np.allclose(state.particles, before + 0.1 * force, atol=1e-12)


def test_long_scores_are_shortened(key):
    x = jnp.array([[100.0, 0.0]])
    sampler = SVGD(RBF(1.0), optax.sgd(1.0), score_clip=2.0)
    bowl = lambda x: -0.5 * jnp.sum(x**2)
    samples = run(key, sampler, bowl, x, num_steps=1)
    assert np.allclose(samples.particles, [[98.0, 0.0]])


def test_langevin_step_has_the_drift_and_the_spread_it_should(key):
    # With a tiny step of the optimizer the update is x + eta s + sqrt(2 eta) noise.
    x = jnp.full((20_000, 1), 3.0)
    sampler = SVGD(RBF(1.0), optax.sgd(0.0), langevin=0.02)
    bowl = lambda x: -0.5 * jnp.sum(x**2)
    state, _ = sampler.step(key, sampler.init(x), bowl)
    moved = np.asarray(state.particles - x)
    variance = 2 * 0.02
    assert abs(moved.mean() + 0.02 * 3) < 5 * (variance / 20_000) ** 0.5
    assert abs(moved.var() / variance - 1) < 5 * (2 / 20_000) ** 0.5


def test_langevin_length_may_follow_the_step(key):
    x = start(key)
    sampler = SVGD(
        RBF(0.7), optax.sgd(0.1), langevin=lambda step: jnp.where(step < 1, 0.0, 0.1)
    )
    still = SVGD(RBF(0.7), optax.sgd(0.1))
    noisy, _ = sampler.step(key, sampler.init(x), log_density)
    plain, _ = still.step(key, still.init(x), log_density)
    assert np.allclose(noisy.particles, plain.particles)
    noisy, _ = sampler.step(key, noisy, log_density)
    plain, _ = still.step(key, plain, log_density)
    assert np.max(np.abs(noisy.particles - plain.particles)) > 0.01


def test_noise_and_start_keep_the_centre_of_mass(key):
    target = DoubleWell()
    x = target.start(key, 6).astype(jnp.float32) + 1  # off center
    kernel = Pullback(RBF(0.5), SortedDistances((0,) * 4))
    sampler = SVGD(kernel, vector_adam(0.01), langevin=0.01, score_clip=10.0)
    samples = run(key, sampler, target.log_density, x, num_steps=30)
    assert np.max(np.abs(np.mean(samples.particles, axis=1))) < 2e-5
    assert np.std(samples.particles) > 0.1


@pytest.mark.parametrize(
    ("kernel", "project"),
    [
        (Pullback(RBF(0.5), DoubleWell().features), None),
        (RBF(0.5), DoubleWell().group.project),
    ],
)
def test_updates_of_any_optimizer_keep_the_center_of_mass(kernel, project, key):
    target = DoubleWell()
    sampler = SVGD(kernel, optax.adam(0.05), project=project)
    x = target.start(key, 6)
    samples = run(key, sampler, target.log_density, x, num_steps=50)
    assert np.max(np.abs(np.mean(samples.particles, axis=1))) < 1e-12
    assert np.std(samples.particles - x) > 0.1


@pytest.mark.parametrize("shape", [(4, 2), (3, 3), (6,)])
@pytest.mark.parametrize(
    "make",
    [
        lambda project: Langevin(0.1, project=project),
        lambda project: MALA(0.1, project=project),
        lambda project: SVGD(RBF(0.5), optax.sgd(0.1), project=project),
    ],
)
def test_points_that_the_projection_does_not_fit_are_refused(make, shape, key):
    sampler, bowl = make(PointCloud("CCO", 2).project), lambda x: -jnp.sum(x**2)
    with pytest.raises(ValueError, match=r"PointCloud with 3 `species`.*got points of"):
        run(key, sampler, bowl, jr.normal(key, (5, *shape)), num_steps=1)
    sampler = make(lambda point: point[0])
    with pytest.raises(ValueError, match="`project` must take points of shape"):
        run(key, sampler, bowl, jr.normal(key, (5, *shape)), num_steps=1)


def test_median_bandwidth_is_taken_anew_every_so_many_steps(key):
    x = start(key)
    sampler = SVGD(RBF(Median(every=3)), optax.sgd(0.5))
    samples = run(key, sampler, log_density, x, num_steps=7, record_every=1)
    bandwidths = samples.history["bandwidth"]
    assert len(set(bandwidths[:3])) == 1
    assert len(set(bandwidths[3:6])) == 1
    assert len(set(bandwidths)) == 3
    assert np.isclose(bandwidths[0], measured_bandwidth(sampler.kernel, x, -x))


# ------------------------------------------------------------ Langevin


def test_langevin_chain_has_the_drift_and_the_spread_it_should(key):
    x = jnp.full((20_000, 1), 3.0)
    sampler = Langevin(0.02, annealing=lambda step: 0.5, score_clip=2.0)
    bowl = lambda x: -0.5 * jnp.sum(x**2)
    state, info = sampler.step(key, sampler.init(x), bowl)
    moved = np.asarray(state.particles - x)
    variance = 2 * 0.02
    # The score, -3, is shortened to -2 and halved by the temperature.
    assert abs(moved.mean() + 0.02 * 1) < 5 * (variance / 20_000) ** 0.5
    assert abs(moved.var() / variance - 1) < 5 * (2 / 20_000) ** 0.5
    assert info.inverse_temperature == 0.5
    assert np.isclose(info.score_norm, 1.0)


@pytest.mark.parametrize(("temperature", "passes"), [(1.0, True), (1.3, False)])
def test_langevin_chains_reach_the_variance_of_their_discrete_law(
    temperature, passes, key
):
    # x <- (1 - eta) x + sqrt(2 eta) xi has variance 1 / (1 - eta / 2).
    bowl = lambda x: -0.5 * jnp.sum(x**2) / temperature
    samples = run(
        key, Langevin(0.2), bowl, jnp.zeros((4_000, 1)), num_steps=60, record_every=60
    )
    spread = np.var(samples.particles) * (1 - 0.1)
    assert (abs(spread - 1) < 5 * (2 / 4_000) ** 0.5) == passes


def test_langevin_step_size_may_follow_the_step(key):
    x, flat = jnp.zeros((4_000, 1)), lambda x: 0.0 * jnp.sum(x)
    sampler = Langevin(lambda step: jnp.where(step < 1, 0.02, 0.08))
    state, _ = sampler.step(key, sampler.init(x), flat)
    again, _ = sampler.step(key, state, flat)
    first, second = np.std(state.particles), np.std(again.particles - state.particles)
    assert np.isclose(second, 2 * first)


def test_a_langevin_step_size_below_zero_by_rounding_stands_still(key):
    x = start(key)
    sampler = Langevin(lambda step: -1e-12 + 0 * step)
    state, _ = sampler.step(key, sampler.init(x), log_density)
    assert np.array_equal(state.particles, x)


def test_langevin_chains_stay_on_the_subspace(key):
    target = DoubleWell()
    x = target.start(key, 6) + 1  # off center
    sampler = Langevin(0.01, score_clip=10.0, project=target.group.project)
    samples = run(key, sampler, target.log_density, x, num_steps=30)
    assert np.max(np.abs(np.mean(samples.particles, axis=1))) < 1e-12
    assert np.std(samples.particles) > 0.1


def test_langevin_chains_are_independent(key):
    x = start(key)
    alone, _ = one_step(SAMPLERS["langevin"], key, SAMPLERS["langevin"].init(x))
    moved = x.at[3].add(5.0)
    beside, _ = one_step(SAMPLERS["langevin"], key, SAMPLERS["langevin"].init(moved))
    others = np.arange(8) != 3
    assert np.allclose(beside.particles[others], alone.particles[others], atol=1e-12)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"step_size": 0.0}, "`step_size` > 0, but got 0.0"),
        ({"step_size": -0.1}, "`step_size` > 0"),
        ({"step_size": float("nan")}, "`step_size` > 0"),
        ({"step_size": 0.1, "score_clip": 0.0}, "`score_clip` > 0"),
    ],
)
def test_a_langevin_sampler_that_cannot_be_is_refused(options, words):
    with pytest.raises(ValueError, match=words):
        Langevin(**options)


# ------------------------------------------------------------ BlackJAX's form


@every_sampler
def test_blackjax_form_is_the_same_step(sampler, key):
    x = start(key)
    algorithm = as_blackjax(sampler, log_density)
    state, info = algorithm.step(key, algorithm.init(x))
    expected, expected_info = sampler.step(key, sampler.init(x), log_density)
    assert np.array_equal(state.particles, expected.particles)
    assert info.update_norm == expected_info.update_norm


def test_blackjax_form_serves_blackjax_s_loop(key):
    x, sampler = start(key), SAMPLERS["noisy"]
    algorithm = as_blackjax(sampler, log_density)
    assert isinstance(algorithm, tuple)
    assert algorithm._fields == blackjax.base.SamplingAlgorithm._fields
    state, (states, infos) = blackjax.util.run_inference_algorithm(
        key, algorithm, num_steps=5, initial_position=x
    )
    assert state.step == 5
    assert states.particles.shape == (5, 8, 2)
    assert infos.update_norm.shape == (5,)


def test_blackjax_form_serves_a_scan(key):
    x, sampler = start(key), SAMPLERS["svgd"]
    algorithm = as_blackjax(sampler, log_density)

    @jax.jit
    def loop(state, keys):
        return jax.lax.scan(lambda s, k: algorithm.step(k, s), state, keys)

    state, infos = loop(algorithm.init(x), jr.split(key, 6))
    samples = run(key, sampler, log_density, x, num_steps=6, record_every=1)
    assert np.allclose(state.particles, samples.particles, atol=1e-12)
    assert np.allclose(infos.force_norm, samples.history["force_norm"])
