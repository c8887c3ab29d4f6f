"""Frames of particles on their way, for the report."""

import jax.numpy as jnp
import numpy as np
import pytest

from equistein.experiments.toys._movement import frames, movement_figure


def history_of(num_records, num_particles=3):
    """Return the history of a run whose coordinates are the number of the step."""
    steps = 10 * np.arange(1, num_records + 1)
    places = np.broadcast_to(steps[:, None, None], (num_records, num_particles, 2))
    return {"step": steps, "particles": places + 1 / 3}


def test_frames_begin_at_the_start_and_end_at_the_end():
    found = frames(jnp.zeros((5, 2)), history_of(100))
    steps, places = found["frame_steps"], found["frames"]
    assert (steps[0], steps[-1]) == (0, 1000)
    assert 30 <= len(steps) <= 40
    assert places.shape == (len(steps), 3, 2)  # of a start of five three are recorded
    assert np.all(places[0] == 0)
    assert np.all(places[1:, 0, 0] == steps[1:] + 0.333)
    gaps = np.diff(steps)
    assert gaps[0] < gaps[-1]  # what moves most is shown most


@pytest.mark.parametrize("num", [1, 2, 7])
def test_a_short_run_has_few_frames(num):
    found = frames(jnp.zeros((3, 2)), history_of(num))
    assert 2 <= len(found["frame_steps"]) <= num + 1
    assert found["frame_steps"][-1] == 10 * num


def test_runs_of_before_have_no_movement_to_show():
    assert movement_figure([], 1.0) is None
