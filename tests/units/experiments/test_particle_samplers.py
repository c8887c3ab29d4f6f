"""Samplers that go on through all budgets, on the smallest system."""

import dataclasses

import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from experiments import experiment
from experiments._particle_config import needs_blackjax
from experiments._particle_samplers import through_budgets
from experiments._systems import SYSTEMS

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("single_precision")]

DW4_SYSTEM = SYSTEMS["dw4"]
BUDGETS = (400, 800)


@pytest.mark.parametrize("name", ["hmc", "tempering", "smc", "hmc-svgd"])
def test_evaluations_end_at_the_budget_and_particles_near_the_density(name):
    if needs_blackjax(_config(), name):
        pytest.importorskip("blackjax")
    config, target = _config(), DW4_SYSTEM.target
    start = target.start(jr.key(1), config.num_particles)
    curves = through_budgets(config, DW4_SYSTEM, name)
    snapshots, others = curves(jr.split(jr.key(0)), jnp.stack([start, start]))
    assert np.any(others[-1][0] != snapshots[-1][0])
    spent = np.array([evaluations for _, evaluations in snapshots])
    assert len(spent) == len(BUDGETS)
    assert np.all(spent >= np.array(BUDGETS) - 1)
    assert np.all(spent <= np.array(BUDGETS) + 60)  # a step's
    assert all(points.shape == start.shape for points, _ in snapshots)
    energies = DW4_SYSTEM.energy(snapshots[-1][0])
    error = np.std(energies) / len(start) ** 0.5
    assert abs(float(energies.mean()) + 22.54) < 5 * error + 0.3


def test_samples_that_e_svgd_ends_on_are_the_chains_moved():
    pytest.importorskip("blackjax")
    config = _config()
    start = DW4_SYSTEM.target.start(jr.key(1), config.num_particles)
    ends = []
    for name in ("hmc", "hmc-svgd"):
        curves = through_budgets(config, DW4_SYSTEM, name)
        ends.append(curves(jr.key(0)[None], start[None])[0][-1][0])
    moved = np.abs(np.asarray(ends[0] - ends[1]))
    assert 0 < np.median(moved)


def _config():
    quick = experiment("particle-sampling").presets["quick"]["dw4"]
    return dataclasses.replace(
        quick, num_particles=200, num_steps=BUDGETS[-1], budgets=BUDGETS[:1],
        num_adapt=100, num_ladders=20,
    )  # fmt: skip
