import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from registries import some_slow
from sampler_registry import EVALUATIONS, log_density, one_step, SAMPLERS, start

from equistein.kernels import RBF
from equistein.samplers import (
    AbstractSampler,
    advance,
    AnnealedSMC,
    Langevin,
    MALA,
    NonFiniteError,
    run,
    RunInterrupted,
    SVGD,
)

_COSTLY = [  # of which a loop takes seconds to compile
    "adam", "equivariant", "median", "annealed", "noisy", "mala", "annealed mala",
    "hmc", "tempering", "smc",
]  # fmt: skip

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


@pytest.mark.parametrize("name", some_slow(list(SAMPLERS), _COSTLY))
def test_history_counts_evaluations_and_keeps_particles(name, key):
    x, sampler = start(key), SAMPLERS[name]
    first = run(key, sampler, log_density, x, num_steps=4, record_every=2, keep=3)
    more = run(
        key, sampler, log_density,
        num_steps=2, record_every=2, initial_state=first.state, keep=100,
    )  # fmt: skip
    at_start, each = EVALUATIONS.get(name, (0, 1))
    spent = at_start + each * np.array([2, 4, 6])
    assert np.array_equal(first.history["evaluations"], spent[:2])
    assert np.array_equal(more.history["evaluations"], spent[2:])
    assert first.history["particles"].shape == (2, 3, 2)
    assert np.array_equal(first.history["particles"][-1], first.particles[:3])
    assert np.array_equal(more.history["particles"], more.particles[None])
    assert "particles" not in run(key, sampler, log_density, x, num_steps=1).history


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


def test_an_interrupt_between_records_keeps_state_and_history_together(
    key, monkeypatch
):
    fetch, calls = jax.device_get, []

    def interrupted(tree):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return fetch(tree)

    monkeypatch.setattr(jax, "device_get", interrupted)
    with pytest.raises(RunInterrupted) as caught:
        run(key, SAMPLERS["svgd"], log_density, start(key), num_steps=40)
    samples = caught.value.samples
    assert 0 < samples.num_steps == samples.history["step"][-1] < 40


def test_progress_is_shown_on_standard_error(key, capsys):
    run(key, SAMPLERS["svgd"], log_density, start(key), num_steps=5, progress=True)
    first, *_, last = capsys.readouterr().err.strip().splitlines()
    assert first.startswith("0 of 5 steps")
    assert last.startswith("5 of 5 steps")


# ------------------------------------------------------------ the loop


@pytest.mark.parametrize("sampler", some_slow(SAMPLERS, _COSTLY))
def test_advance_takes_the_steps_that_run_takes(sampler, key):
    x = start(key)
    straight = run(key, sampler, log_density, x, num_steps=5, record_every=5)
    state = advance(key, sampler, log_density, sampler.init(x, log_density), 3)
    assert state.step == 3
    state = jax.jit(lambda s, n: advance(key, sampler, log_density, s, n))(state, 5)
    assert np.allclose(state.particles, straight.particles, atol=1e-12)
    assert advance(key, sampler, log_density, state, 4).step == 5


def test_advance_ends_at_the_first_small_update(key):
    bowl = lambda x: -0.5 * jnp.sum(x**2)
    sampler, x = SVGD(RBF(1.0), optax.sgd(0.1)), jnp.full((1, 2), 2.0)
    lengths = 0.2 * 2**0.5 * 0.9 ** np.arange(100)
    for tol in (1e-2, jnp.asarray(1e-2)):
        state = advance(key, sampler, bowl, sampler.init(x, bowl), 100, tol)
        assert state.step == np.argmax(lengths < 1e-2) + 1
    assert advance(key, sampler, bowl, sampler.init(x, bowl), 7, 1e-2).step == 7


@pytest.mark.parametrize("factor", [0.5, jnp.asarray(0.5)])
@pytest.mark.parametrize("sampler", some_slow(SAMPLERS, _COSTLY))
def test_scaled_sampler_takes_steps_of_another_size(sampler, factor, key):
    if isinstance(sampler, AnnealedSMC):  # whose first step is to the reference
        assert sampler.scale_steps(factor).inner.step_size == factor * 0.05
        return
    x = start(key)
    same, small = (
        sampler.scale_steps(1.0),
        sampler.scale_steps(2.0).scale_steps(factor / 4),
    )
    straight, _ = one_step(sampler, key, sampler.init(x, log_density))
    unchanged, _ = one_step(same, key, same.init(x, log_density))
    assert np.allclose(unchanged.particles, straight.particles, atol=1e-12)
    shrunk, _ = one_step(small, key, small.init(x, log_density))
    gaps = [np.linalg.norm(s.particles - x) for s in (straight, shrunk)]
    assert gaps[1] < 0.6 * gaps[0]  # a quarter, or half of noise


def test_scaled_steps_by_hand(key):
    x = start(key)
    sampler = SVGD(RBF(0.7), optax.sgd(0.1), langevin=lambda step: 0.02)
    halved = SVGD(RBF(0.7), optax.sgd(0.05), langevin=0.01)
    expected, _ = one_step(halved, key, halved.init(x, log_density))
    scaled, _ = one_step(sampler.scale_steps(0.5), key, sampler.init(x, log_density))
    assert np.allclose(scaled.particles, expected.particles, atol=1e-12)
    assert Langevin(0.3).scale_steps(0.5).step_size == 0.15
    assert MALA(0.3).scale_steps(0.5).step_size == 0.15


class PlainState(eqx.Module):
    particles: jax.Array
    step: jax.Array


class PlainInfo(eqx.Module):
    log_density: jax.Array
    update_norm: jax.Array


class Ascent(AbstractSampler):
    """A user's own sampler: no more than the interface asks for."""

    def init(self, particles, log_density):
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
    assert sampler.scale_steps(0.5) is sampler
