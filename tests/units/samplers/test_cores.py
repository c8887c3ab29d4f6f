"""Several runs that cores share are those that go in one thread."""

import threading

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
import pytest

import equistein as es
from equistein import _cores as cores
from equistein.kernels import RBF
from equistein.samplers import _calls as calls_module

SAMPLER = es.SVGD(RBF(1.0), optax.sgd(0.1))
NUM_RUNS = 5


def bowl(point):
    return -0.5 * jnp.sum(point**2)


def shared_by(monkeypatch, num):
    monkeypatch.setattr(calls_module, "num_shares", lambda runs, like: num)


def samples(density=bowl, **options):
    keys = jr.split(jr.key(0), NUM_RUNS)
    start = jr.normal(jr.key(1), (NUM_RUNS, 8, 2))
    options = {"num_steps": 40, "record_every": 2, "keep": 2} | options
    return es.run(keys, SAMPLER, density, start, **options)


def test_runs_that_cores_share_are_the_same(monkeypatch):
    shared_by(monkeypatch, 1)
    together = samples()
    for num in (2, 3):
        shared_by(monkeypatch, num)
        shared = samples()
        assert np.allclose(shared.particles, together.particles, rtol=1e-12)
        assert np.array_equal(shared.converged, together.converged)
        assert set(shared.history) == set(together.history)
        for name, values in together.history.items():
            assert np.allclose(shared.history[name], values, rtol=1e-10)
        more = samples()
        assert np.array_equal(more.particles, shared.particles)


def test_a_run_that_leaves_the_numbers_is_named_by_all_cores(monkeypatch):
    shared_by(monkeypatch, 2)
    ridge = lambda x: -jnp.sum(jnp.sqrt(1 - x))
    start = jnp.full((3, 1, 1), -50.0).at[2].set(0.5)
    with pytest.raises(es.NonFiniteError, match="of run 2"):
        es.run(
            jr.split(jr.key(0), 3), es.SVGD(RBF(1.0), optax.sgd(0.01)), ridge, start,
            num_steps=500, record_every=10,
        )  # fmt: skip


def test_control_c_leaves_what_all_cores_did(monkeypatch):
    shared_by(monkeypatch, 2)
    whole, found, looks = samples(), cores.Cores.joined, []

    def interrupted(self, parts):
        looks.append(1)
        if len(looks) == 4:
            raise KeyboardInterrupt
        return found(self, parts)

    monkeypatch.setattr(cores.Cores, "joined", interrupted)
    before = threading.active_count()
    with pytest.raises(es.RunInterrupted) as caught:
        samples()
    assert threading.active_count() == before
    kept = caught.value.samples
    assert np.array_equal(kept.num_steps, [6] * NUM_RUNS)
    monkeypatch.setattr(cores.Cores, "joined", found)
    rest = es.run(
        jr.split(jr.key(0), NUM_RUNS), SAMPLER, bowl, initial_state=kept.state,
        num_steps=34, record_every=2,
    )  # fmt: skip
    assert np.allclose(rest.particles, whole.particles, rtol=1e-12)


def test_what_calls_python_is_called_in_one_thread(monkeypatch):
    shared_by(monkeypatch, 2)
    threads = set()

    def spring(points):
        threads.add(threading.get_ident())
        return 0.5 * np.sum(points**2, axis=-1), -points

    inside = lambda x: jax.lax.cond(x[0] > 9, lambda: density(x), lambda: bowl(x))
    density = es.from_energy_forces(spring, temperature=1 / 8.617333262e-5)
    assert cores.calls_python(density, jnp.zeros(2))
    assert cores.calls_python(inside, jnp.zeros(2))
    assert not cores.calls_python(bowl, jnp.zeros(2))
    made = []
    monkeypatch.setattr(cores.Cores, "__init__", lambda *given: made.append(1))
    samples(density, num_steps=2)
    assert threads
    assert not made


def test_threads_do_not_share_what_only_the_caller_has_set():
    like = jnp.zeros(3)
    most = cores.num_shares(1_000, like)
    assert cores.num_shares(1, like) == 1
    assert cores.num_shares(2, like) == min(2, most)
    with jax.default_matmul_precision("float32"):
        assert cores.num_shares(1_000, like) == 1


@pytest.mark.parametrize(("runs", "num"), [(5, 2), (4, 4), (7, 3)])
def test_parts_are_joined_in_their_order(runs, num):
    shared = cores.Cores(runs, num)
    tree = {"x": jnp.arange(2 * runs).reshape(runs, 2), "name": "a state"}
    parts = shared.split(tree)
    assert len(parts) <= num
    assert len({len(part["x"]) for part in parts}) == 1  # one program
    doubled = lambda part: part | {"x": 2 * part["x"]}
    twice = shared.begin(doubled, shared.begin(doubled, parts))
    joined = shared.joined(twice)
    shared.close()
    assert np.array_equal(joined["x"], 4 * tree["x"])
    assert joined["name"] == "a state"
