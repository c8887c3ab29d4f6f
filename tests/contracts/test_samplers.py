import blackjax
import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from registries import classes_of, some_slow
from sampler_registry import (
    every_sampler,
    log_density,
    NOISY,
    one_step,
    QUIET,
    SAMPLERS,
    start,
)

from equistein.groups import Cyclic
from equistein.samplers import (
    AbstractSampler,
    AnnealedSMC,
    as_blackjax,
    run,
    ShardedSampler,
)

every_sampler_costly_ones_slow = pytest.mark.parametrize(
    "sampler", some_slow(SAMPLERS, ["hmc", "tempering", "smc"])
)


def test_every_sampler_is_in_the_registry():
    listed = {type(sampler) for sampler in SAMPLERS.values()}
    # What splits another sampler over devices is tried in `test_devices`.
    assert listed == classes_of(AbstractSampler) - {ShardedSampler}


@every_sampler_costly_ones_slow
@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_step_gives_a_state_like_the_one_it_took(sampler, dtype, key):
    start_key, step_key = jr.split(key)
    x = start(start_key, dtype=dtype)
    state = sampler.init(x, log_density)
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
    assert all(np.ndim(leaf) <= 1 for leaf in jax.tree.leaves(info))
    if not isinstance(sampler, AnnealedSMC):  # which begins elsewhere
        mean = np.mean(jax.jit(jax.vmap(log_density))(x))
        assert np.isclose(info.log_density, mean, rtol=1e-5)


@every_sampler_costly_ones_slow
def test_run_is_init_and_steps(sampler, key):
    start_key, run_key = jr.split(key)
    x = start(start_key)
    state, infos = sampler.init(x, log_density), []
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
            expected = [getattr(info, name) for info in infos]
            assert np.allclose(values, np.array(expected))


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


@pytest.mark.parametrize(
    "name", some_slow(["mala", "tempering", "smc"], ["tempering", "smc"])
)
def test_a_state_of_another_density_is_refused(name, key):
    sampler, x = SAMPLERS[name], start(key)
    state = run(key, sampler, log_density, x, num_steps=2).state
    other = lambda x: 2 * log_density(x)
    with pytest.raises(ValueError, match="`initial_state`"):
        run(key, sampler, other, num_steps=2, initial_state=state)


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
    straight, _ = one_step(sampler, key, sampler.init(x, log_density))
    shuffled, _ = one_step(sampler, key, sampler.init(x[order], log_density))
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


def test_density_is_not_traced_again_for_a_new_start_or_key(key):
    density = eqx.debug.assert_max_traces(lambda x: -jnp.sum(x**2), max_traces=8)
    sampler, traces = SAMPLERS["svgd"], set()
    for start_key, run_key in jr.split(key, (3, 2)):
        x = start(start_key)
        run(run_key, sampler, density, x, num_steps=40, record_every=10, check=False)
        traces.add(eqx.debug.get_num_traces(density))
    assert len(traces) == 1


# ------------------------------------------------------------ edges


@every_sampler_costly_ones_slow
def test_coinciding_particles_stay_finite(sampler, key):
    x = jax.device_put(np.repeat(np.float32([[0, 0], [1, 1]]), 4, axis=0))
    state = sampler.init(x, log_density)
    for _ in range(3):
        state, _ = one_step(sampler, key, state)
    assert np.all(np.isfinite(state.particles))
    if sampler not in NOISY:
        particles = np.asarray(state.particles)
        assert np.allclose(particles[4:], particles[4:5])


# ------------------------------------------------------------ BlackJAX's form


@pytest.mark.parametrize("name", ["svgd", "mala"])
def test_blackjax_form_is_the_same_step(name, key):
    sampler, x = SAMPLERS[name], start(key)
    algorithm = as_blackjax(sampler, log_density)
    state, info = jax.jit(algorithm.step)(key, algorithm.init(x))
    expected, expected_info = one_step(sampler, key, sampler.init(x, log_density))
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
