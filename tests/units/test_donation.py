"""Calls that take over the buffers of states, as on a GPU, lose and change nothing."""

import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
import pytest

import equistein as es
from equistein import _donation as donation
from equistein.kernels import RBF

SAMPLER = es.SVGD(RBF(1.0), optax.adam(0.1))


def bowl(point):
    return -0.5 * jnp.sum(point**2)


@pytest.fixture
def giving_away(monkeypatch):
    monkeypatch.setattr("equistein.samplers._calls.gives_away", lambda state: True)


def test_what_is_set_aside_outlives_what_is_given_away():
    state = {"x": jnp.arange(5.0), "same": jnp.ones(3), "name": "a state"}
    own = donation.copied(state)
    aside = donation.set_aside(own)

    def doubled(state, factor):
        return state | {"x": factor * state["x"]}

    found = donation.giving_away(doubled)(own, jnp.asarray(2.0))
    assert own["x"].is_deleted()
    assert own["same"].is_deleted()
    assert np.array_equal(found["x"], 2 * np.arange(5.0))
    assert aside["x"].sharding.memory_kind == "pinned_host"
    back = donation.brought_back(aside)
    assert back["x"].sharding.memory_kind == "device"
    assert np.array_equal(back["x"], state["x"])
    assert back["name"] == "a state"
    assert not donation.gives_away(state)  # a processor has no other memory


@pytest.mark.parametrize("num_runs", [None, 3])
def test_a_run_is_the_same_and_what_it_began_from_is_left(num_runs, request):
    key = jr.key(0) if num_runs is None else jr.split(jr.key(0), num_runs)
    start = jr.normal(jr.key(1), (*([num_runs] if num_runs else []), 8, 2))

    def ends():
        first = es.run(key, SAMPLER, bowl, start, num_steps=30, keep=2)
        return first, es.run(
            key, SAMPLER, bowl, initial_state=first.state, num_steps=30
        )

    kept = ends()
    request.getfixturevalue("giving_away")
    for before, after in zip(kept, ends(), strict=True):
        assert np.array_equal(before.particles, after.particles)
        assert set(before.history) == set(after.history)
        for name, values in before.history.items():
            assert np.array_equal(values, after.history[name])
        assert after.particles.sharding.memory_kind == "device"
    assert np.all(np.isfinite(start))


def test_a_density_that_raises_leaves_the_run_so_far(giving_away):
    calls = []

    def spring(points):
        calls.append(1)
        if len(calls) > 60:
            raise RuntimeError("no convergence")
        return 0.5 * np.sum(points**2, axis=-1), -points

    density = es.from_energy_forces(spring, temperature=1 / 8.617333262e-5)
    start = jnp.ones((3, 2))
    with pytest.raises(es.EvaluationFailed) as caught:
        es.run(jr.key(0), es.MALA(0.1), density, start, num_steps=200)
    samples = caught.value.samples
    assert 0 < samples.num_steps < 60
    assert np.all(np.isfinite(samples.particles))
    more = es.run(
        jr.key(0), es.MALA(0.1), bowl, initial_state=samples.state, num_steps=2
    )
    assert more.num_steps == 2


def test_a_run_that_leaves_the_numbers_ends_at_the_same_step(request):
    ridge = lambda x: -jnp.sum(jnp.sqrt(1 - x))
    sampler = es.SVGD(RBF(1.0), optax.sgd(0.01))

    def failed():
        with pytest.raises(es.NonFiniteError) as caught:
            es.run(
                jr.key(0), sampler, ridge, jnp.zeros((1, 1)), num_steps=1_000,
                record_every=10,
            )  # fmt: skip
        return caught.value

    kept = failed()
    request.getfixturevalue("giving_away")
    given = failed()
    assert given.step == kept.step
    assert np.array_equal(given.samples.particles, kept.samples.particles)
