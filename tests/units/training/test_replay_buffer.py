import jax.random as jr
import numpy as np
from by_hand import bowl, epochs, STILL, svgd

from equistein.groups import Trivial
from equistein.training import Box, ContrastiveDivergence, ReplayBuffer

FEW = {"num_particles": 5, "num_steps": 1, "reset_probability": 0.0}


def buffer(data, size=12, sampler=None, **options):
    start = Box(data, Trivial())
    return ReplayBuffer(sampler or svgd(), start, size, **FEW | options)


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
