"""The mixture whose modes are far apart: what is averaged, and who finds it."""

import dataclasses

import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from equistein.runs import FLOOR
from equistein.samplers import Samples
from experiments import experiment
from experiments._hard_mixture_samplers import annealed, averaged
from experiments._perform import perform

QUICK = experiment("hard-mixture").presets["quick"]


def test_weights_are_averages_over_the_records_after_the_adaptation():
    target = dataclasses.replace(QUICK, dim=2).target
    places = target.means[jnp.array([[3, 3], [0, 0], [0, 1], [2, 0]])]
    history = {
        "step": np.array([10, 20, 30, 40]),
        "particles": np.asarray(places),
        "evaluations": np.array([31, 61, 91, 121]),
    }
    samples = Samples(places[-1], history, 40, False, None)
    found = averaged(target, samples, after=10)
    metrics = {name: values[0] for name, values in found.metrics.items()}
    weights = [metrics[f"weight_{i}"] for i in range(1, 5)]
    assert weights == pytest.approx([4 / 6, 1 / 6, 1 / 6, 0])
    assert metrics["evaluations"] == 2 * 121
    assert found.history["step"][0] == pytest.approx([122, 182, 242])
    assert found.history["weight_error"][0] == pytest.approx([0.6, 0.35, 4 / 6 - 0.4])
    assert metrics["changes_of_mode"] == 3
    assert metrics["relative_width"] == 0
    assert metrics["weight_error"] == pytest.approx(4 / 6 - 0.4)


@pytest.mark.slow
def test_sequential_monte_carlo_goes_on_until_it_is_there():
    config = dataclasses.replace(QUICK, dim=4, num_smc_particles=4_096, num_moves=5)
    found = annealed(config)(jr.key(0), config.target.means)
    metrics = {name: values[0] for name, values in found.metrics.items()}
    assert len(found.samples) == pytest.approx(1_000, rel=0.2)
    assert sum(metrics[f"weight_{i}"] for i in range(1, 5)) == pytest.approx(1)
    assert abs(metrics["log_z_error"]) < 0.3
    assert metrics["relative_width"] == pytest.approx(1, abs=0.05)
    assert found.history["step"][0, -1] == metrics["evaluations"]


@pytest.mark.slow
def test_tempering_and_annealing_find_what_plain_chains_do_not(single_precision):
    config = dataclasses.replace(
        QUICK, num_seeds=1, dim=6, num_steps=4_000, num_smc_particles=8_192,
        nuts_steps=20, num_svgd_particles=64,
    )  # fmt: skip
    outcomes = perform(experiment("hard-mixture"), config)
    errors = {name: out.metrics["weight_error"].max() for name, out in outcomes.items()}
    assert errors[FLOOR] < 0.06
    for name in ("tempering", "smc"):
        assert errors[name] < 0.06
        metrics = outcomes[name].metrics
        assert abs(metrics["log_z_error"][0]) < 4.5 * metrics["log_z_stated_error"][0]
        assert metrics["log_z_stated_error"][0] < 0.1
        assert metrics["relative_width"][0] == pytest.approx(1, abs=0.1)
    assert outcomes["tempering"].metrics["round_trips"] > 1_000
    for name in ("mala", "nuts", "svgd"):
        assert errors[name] > 0.3
        assert outcomes[name].metrics["changes_of_mode"] == 0
