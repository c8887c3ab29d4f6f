import dataclasses

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
import pytest
from by_hand import (
    batch_of,
    bowl,
    divergence_of,
    epochs,
    fit,
    persistent,
    STILL,
    svgd,
)

from equistein.groups import Cyclic
from equistein.kernels import Equivariant, RBF
from equistein.samplers import Langevin, SVGD
from equistein.training import (
    Batch,
    ContrastiveDivergence,
    PersistentState,
)


def moved(key, negatives, particles, energy=None, points=None, count=0):
    """Return the state and the info after a batch of particles that are given."""
    state = PersistentState(particles, jnp.asarray(count))
    points = jnp.ones((8, particles.shape[1])) if points is None else points
    _, state, info = eqx.filter_jit(negatives.draw)(
        key, energy or bowl(), state, batch_of(points)
    )
    return state, info


def test_particles_start_in_the_box_and_all_move(key):
    data = jr.normal(key, (8, 2))
    (old, new), _ = epochs(key, bowl(), data, divergence_of(data))
    old, new = old.objective_state, new.objective_state
    assert old.particles.shape == (5, 2)
    assert np.max(np.abs(old.particles - data.mean(axis=0)[None])) > 0
    assert np.all(np.asarray(new.particles != old.particles))
    assert (int(old.count), int(new.count)) == (0, 1)


def test_particles_persist_unless_they_are_reset(key):
    data, particles = jr.normal(key, (8, 2)), jr.normal(key, (5, 2))
    state, info = moved(key, persistent(data, STILL), particles)
    assert np.allclose(state.particles, particles, atol=1e-9)
    assert np.allclose(info["displacement"], 0, atol=1e-9)
    resetting = persistent(data, STILL, reset_probability=1.0)
    state, info = moved(key, resetting, particles)
    assert np.min(np.abs(state.particles - particles)) > 1e-6
    # A jump to a fresh start is no move.
    assert np.allclose(info["displacement"], 0, atol=1e-9)


def test_some_particles_are_reset(key):
    data = jr.normal(key, (8, 2))
    particles = jnp.full((4_000, 2), 100.0)
    negatives = persistent(data, STILL, num_particles=4_000, reset_probability=0.05)
    state, _ = moved(key, negatives, particles)
    share = np.mean(np.abs(state.particles[:, 0] - 100) > 1)
    assert abs(share - 0.05) < 5 * (0.05 * 0.95 / 4_000) ** 0.5


@pytest.mark.parametrize("share", [0.5, 1.0])
def test_particles_may_start_anew_at_the_data(share, key):
    data = jr.normal(key, (8, 2))
    negatives = persistent(
        data, STILL, num_particles=400, reset_probability=1.0, reset_to_data=share
    )
    state, _ = moved(key, negatives, jnp.zeros((400, 2)), points=data)
    gaps = jnp.linalg.norm(state.particles[:, None] - data[None], axis=-1)
    nearest = np.asarray(jnp.argmin(gaps, axis=1))
    at_data = np.asarray(jnp.min(gaps, axis=1)) < 1e-6
    assert abs(np.mean(at_data) - share) <= 5 * (share * (1 - share) / 400) ** 0.5
    if share == 1.0:
        assert set(nearest) == set(range(8))


def test_a_tolerance_stops_the_sampler_early(key):
    # One particle in a bowl moves by 0.1 |x|: lengths are 0.2, 0.18, 0.162, ...
    particles = jnp.array([[2.0, 0.0]])
    lengths = 0.2 * 0.9 ** np.arange(40)
    early = int(np.argmax(lengths < 0.1)) + 1
    for tolerance, steps in ((0.1, early), (1e-9, 40), (None, 40)):
        negatives = persistent(
            jnp.ones((8, 2)), svgd(langevin=0.0), num_particles=1, num_steps=40,
            tolerance=tolerance,
        )  # fmt: skip
        state, info = moved(key, negatives, particles)
        assert info["sampler_steps"] == steps
        assert np.allclose(state.particles, particles * 0.9**steps)


def test_a_step_factor_acts_by_the_number_of_batches(key):
    # On a ramp one particle moves by the step times the slope.
    data = jnp.ones((8, 1))
    schedule = optax.piecewise_constant_schedule(1.0, {1: 0.5, 3: 0.2})
    objective = divergence_of(
        data, svgd(langevin=0.0), num_particles=1, step_factor=schedule
    )
    _, infos = epochs(key, bowl(0.0, 2.0), data, objective, num=5)
    moves = [float(info["displacement"][0]) for info in infos]
    assert np.allclose(moves, [0.2, 0.1, 0.1, 0.02, 0.02])


def test_a_step_factor_acts_on_the_noise_too(key):
    data = jnp.ones((8, 1))
    negatives = persistent(
        data, Langevin(0.1), num_particles=4_000,
        step_factor=optax.piecewise_constant_schedule(1.0, {1: 0.25}),
    )  # fmt: skip
    moves = [
        moved(key, negatives, jnp.zeros((4_000, 1)), bowl(0.0), count=count)[1]
        for count in (0, 1)
    ]
    moves = [float(info["displacement"]) for info in moves]
    assert np.allclose(moves, [0.2**0.5, 0.05**0.5], rtol=5 / 8_000**0.5)


@pytest.mark.parametrize("size", [None, 1])
def test_halved_steps_move_half_as_far(size, key):
    data, particles = jnp.ones((8, 1)), jnp.zeros((1, 1))
    sampler = svgd(langevin=0.0)
    negatives = persistent(data, sampler, num_particles=1, buffer_size=size)
    state = PersistentState(particles, jnp.asarray(0))
    moves = []
    for scale in (1.0, 0.5):
        batch = Batch(data, None, jnp.arange(len(data)), scale)
        _, _, info = negatives.draw(key, bowl(0.0, 2.0), state, batch)
        moves.append(info["displacement"])
    assert np.allclose(moves, [0.2, 0.1])


@pytest.mark.slow
@pytest.mark.parametrize("repel", [True, False])
def test_data_may_repel_the_particles(repel, key):
    points = jnp.zeros((8, 2)).at[0].set(1.0)
    particles = jr.normal(key, (5, 2))
    sampler = SVGD(RBF(1.0), optax.sgd(0.1))
    state, _ = moved(
        key, persistent(points, sampler, repel=repel), particles, bowl(0.0), points
    )
    with_data = dataclasses.replace(sampler, repellers=points) if repel else sampler
    after, _ = with_data.step(
        key, with_data.init(particles, bowl(0.0).log_density), bowl(0.0).log_density
    )
    assert np.allclose(state.particles, after.particles)
    without, _ = moved(key, persistent(points, sampler), particles, bowl(0.0), points)
    apart = np.max(np.abs(state.particles - without.particles)) > 1e-4
    assert apart == repel


def test_the_norm_of_scores_is_told_of_an_eighth_of_the_particles(key):
    data = jr.normal(key, (8, 2))
    negatives = persistent(data, num_particles=9)
    state, info = moved(key, negatives, jr.normal(key, (9, 2)), bowl(3.0))
    some = state.particles[:2]
    assert np.allclose(info["score_norm"], 3 * np.sqrt(np.sum(some**2) / 2))


def test_energies_far_too_large_at_the_start_are_refused(key):
    data = jr.normal(key, (8, 2)) * jnp.array([[1.0, 1e6]])
    with pytest.raises(ValueError, match=r"Where particles start.*beyond 1e\+06"):
        fit(key, bowl(), data)


def test_a_sampler_of_other_points_is_refused(key):
    data = jr.normal(key, (8, 3))
    sampler = SVGD(Equivariant(RBF(1.0), Cyclic(4)), optax.sgd(0.1))
    with pytest.raises(ValueError, match="shape"):
        fit(key, bowl(), data, divergence_of(data, sampler))


def buffer(data, size=12, sampler=None, **options):
    return persistent(data, sampler, buffer_size=size, **options)


def test_only_the_particles_drawn_from_the_buffer_move(key):
    data = jr.normal(key, (8, 2))
    objective = ContrastiveDivergence(buffer(data), 0.0)
    states, infos = epochs(key, bowl(), data, objective, num=20)
    kept = [state.objective_state for state in states]
    assert kept[0].particles.shape == (12, 2)
    for old, new in zip(kept[:-1], kept[1:], strict=True):
        moved = np.any(np.asarray(new.particles != old.particles), axis=1)
        assert np.sum(moved) == 5
        assert new.count == old.count + 1
    moved = np.any(np.asarray(kept[-1].particles != kept[0].particles), axis=1)
    assert np.all(moved)  # the chance that one of them is never drawn is 12 (7/12)^20
    # The loss is that of the five, which went back into the buffer.
    moved = np.any(np.asarray(kept[1].particles != kept[0].particles), axis=1)
    squares = np.sum(np.asarray(kept[1].particles)[moved] ** 2, axis=1)
    assert np.allclose(infos[0]["negative_energy"], 0.5 * np.mean(squares))


def test_particles_of_the_buffer_are_reset_when_they_are_drawn(key):
    data = jr.normal(key, (8, 2))
    negatives = buffer(data, sampler=STILL, reset_probability=1.0)
    (old, new), _ = epochs(key, bowl(), data, ContrastiveDivergence(negatives, 0.0))
    old, new = (np.asarray(s.objective_state.particles) for s in (old, new))
    assert np.sum(np.any(np.abs(old - new) > 1e-6, axis=1)) == 5
