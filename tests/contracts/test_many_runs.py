import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
import pytest
from registries import some_slow
from sampler_registry import log_density, SAMPLERS, start

from equistein.kernels import AbstractBandwidth, RBF
from equistein.samplers import load_samples, NonFiniteError, run, SVGD

RUNS = 3


def starts(key, num=8):
    return jnp.stack([start(each, num) for each in jr.split(key, RUNS)])


@pytest.mark.parametrize("name", some_slow(list(SAMPLERS), set(SAMPLERS) - {"median"}))
def test_runs_side_by_side_are_those_one_by_one(name, key, tmp_path):
    sampler, keys, x = SAMPLERS[name], jr.split(key, RUNS), starts(key)
    options = {"num_steps": 4, "record_every": 2, "keep": 2}
    both = run(keys, sampler, log_density, x, **options)
    assert both.particles.shape == x.shape
    assert np.array_equal(both.num_steps, [4] * RUNS)
    for i in range(RUNS):
        one, found = run(keys[i], sampler, log_density, x[i], **options), both[i]
        assert np.allclose(found.particles, one.particles, rtol=1e-6)
        assert set(found.history) == set(one.history)
        for field, values in one.history.items():
            assert np.allclose(found.history[field], values, rtol=1e-6), field
        for field, value in one.summary.items():
            same = np.allclose(found.summary[field], value, 1e-6, equal_nan=True)
            assert same, field
    both.save(tmp_path / "samples.npz")
    kept = load_samples(tmp_path / "samples.npz", sampler)
    more = run(keys, sampler, log_density, initial_state=kept.state, num_steps=2)
    one = run(keys[1], sampler, log_density, initial_state=both[1].state, num_steps=2)
    assert np.allclose(more[1].particles, one.particles, rtol=1e-6)


def test_each_run_stops_at_the_tolerance_by_itself(key):
    bowl = lambda x: -0.5 * jnp.sum(x**2)
    x = jnp.asarray([[[2.0, 2.0]], [[0.02, 0.02]]])
    sampler = SVGD(RBF(1.0), optax.sgd(0.1))
    options = {"num_steps": 200, "tol": 1e-3, "record_every": 7}
    both = run(jr.split(key), sampler, bowl, x, **options)
    for i in range(2):
        one = run(key, sampler, bowl, x[i], **options)
        assert both.converged[i]
        assert both.num_steps[i] == one.num_steps
        assert np.allclose(both.particles[i], one.particles, rtol=1e-6)
        steps = both.history["step"][i]
        num = len(one.history["step"])
        assert np.array_equal(steps[:num], one.history["step"])
        assert np.all(steps[num:] == one.num_steps)
    assert both.num_steps[1] < both.num_steps[0]
    more = run(jr.split(key), sampler, bowl, initial_state=both.state, num_steps=3)
    assert np.array_equal(more.num_steps, [3, 3])
    assert np.array_equal(more.history["step"][:, -1], both.num_steps + 3)


TOLD = []


class Counted(AbstractBandwidth):
    """A rule that tells how often it is taken."""

    every: int = 5
    max_particles: int = 100

    def __call__(self, squared_distances):
        jax.debug.callback(lambda: TOLD.append(1))
        return jnp.mean(squared_distances)


def test_a_rule_is_taken_at_its_steps_only(key):
    TOLD.clear()
    sampler, x = SVGD(RBF(Counted()), optax.sgd(0.01)), starts(key)
    run(jr.split(key, RUNS), sampler, log_density, x, num_steps=10)
    jax.effects_barrier()
    assert len(TOLD) == 2  # for all runs at once
    # Chosen by runs that are at different steps, it is taken for all when for one.
    state = jax.jit(jax.vmap(lambda x: sampler.init(x, log_density)))(x)
    TOLD.clear()

    def bandwidth(state, step):
        state = sampler.init(state.particles, log_density)
        at = type(state)(state.particles, state.opt_state, state.bandwidth, step)
        return sampler.step(key, at, log_density)[0].bandwidth

    found = jax.jit(jax.vmap(bandwidth))(state, jnp.asarray([4, 5, 6]))
    jax.effects_barrier()
    assert len(TOLD) == 1
    assert np.array_equal(found == 1, [True, False, True])


def test_a_run_that_leaves_the_numbers_is_named(key):
    ridge = lambda x: -jnp.sum(jnp.sqrt(1 - x))
    x = jnp.asarray([[[-50.0]], [[0.5]]])
    sampler = SVGD(RBF(1.0), optax.sgd(0.01))
    with pytest.raises(NonFiniteError, match="of run 1; .* of each run") as caught:
        run(jr.split(key), sampler, ridge, x, num_steps=500, record_every=10)
    with pytest.raises(NonFiniteError) as alone:
        run(key, sampler, ridge, x[1], num_steps=500, record_every=10)
    assert caught.value.step == alone.value.step
    assert np.all(np.isfinite(caught.value.samples.particles))


def test_bad_runs_are_refused(key):
    sampler, keys, x = SAMPLERS["svgd"], jr.split(key, RUNS), starts(key)
    with pytest.raises(ValueError, match="`run`"):
        run(keys, sampler, log_density, x[0], num_steps=1)
    with pytest.raises(ValueError, match="for as many runs|`run` got 3 keys"):
        run(keys, sampler, log_density, jnp.ones((RUNS, 8)), num_steps=1)
    with pytest.raises(ValueError, match="keys of shape"):
        run(keys[None], sampler, log_density, x, num_steps=1)
    one = run(key, sampler, log_density, x[0], num_steps=1)
    with pytest.raises(ValueError, match="as many runs as there are keys"):
        run(keys, sampler, log_density, initial_state=one.state, num_steps=1)
    with pytest.raises(ValueError, match="of one run"):
        one[0]
