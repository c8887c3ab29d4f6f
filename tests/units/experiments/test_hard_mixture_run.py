"""The mixture whose modes are far apart: what is averaged, and who finds it."""

import dataclasses

import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from equistein.runs import seed_outcome
from equistein.samplers import Samples
from experiments import experiment
from experiments._engine import perform
from experiments._hard_samplers import annealed, averaged, largest_error

QUICK = experiment("hard-mixture").presets["quick"]


def test_weights_are_averages_over_the_records_after_the_adaptation():
    target = dataclasses.replace(QUICK, dim=2).target()
    places = target.means[jnp.array([[3, 3], [0, 0], [0, 1], [2, 0]])]
    history = {
        "step": np.array([10, 20, 30, 40]),
        "particles": np.asarray(places),
        "evaluations": np.array([31, 61, 91, 121]),
    }
    samples = Samples(places[-1], history, 40, False, None)
    found = averaged(target, samples, after=10)
    assert found.weights == pytest.approx([4 / 6, 1 / 6, 1 / 6, 0])
    assert found.evaluations == 2 * 121
    assert found.history["step"] == pytest.approx([122, 182, 242])
    assert found.history["weight_error"] == pytest.approx([0.6, 0.35, 4 / 6 - 0.4])
    assert found.numbers["changes_of_mode"] == 3
    assert found.numbers["relative_width"] == 0
    assert largest_error(target, found.weights) == pytest.approx(4 / 6 - 0.4)


def test_the_report_says_first_who_is_right_and_who_fails():
    def outcome(**metrics):
        return seed_outcome(metrics, np.zeros((1, 2)))

    sure = {"log_z_within_two": True, "log_z_stated_error": 0.05}
    outcomes = {
        "exact": outcome(weights_within_tolerance=True),
        "tempering": outcome(weights_within_tolerance=True, **sure),
        "mala": outcome(weights_within_tolerance=False),
    }
    conclude = experiment("hard-mixture").conclude
    assert conclude(QUICK, outcomes) == (
        "In 20 dimensions tempering has all weights within 0.03 in 1 and log Z within "
        "two stated errors (at most 0.05) in 1 of 1 seeds; mala fail to find the "
        "weights."
    )
    assert conclude(QUICK, {"exact": outcomes["exact"]}) == ""


@pytest.mark.slow
def test_sequential_monte_carlo_goes_on_until_it_is_there():
    config = dataclasses.replace(QUICK, dim=4)
    target = config.target()
    found = annealed(config, (512, 4_096), 5)(jr.key(0), target, target.means)
    assert len(found.points) == pytest.approx(1_000, rel=0.2)
    assert np.sum(found.weights) == pytest.approx(1, abs=1e-6)
    assert abs(found.numbers["log_z_error"]) < 0.3
    assert found.numbers["relative_width"] == pytest.approx(1, abs=0.05)
    fewer, more = found.history["step"]
    assert found.evaluations == more
    assert more == pytest.approx(8 * fewer, rel=0.2)


@pytest.mark.slow
def test_tempering_and_annealing_find_what_plain_chains_do_not(single_precision):
    config = dataclasses.replace(
        QUICK, num_seeds=1, dim=6, num_steps=8_000, num_smc_particles=16_384,
        smc_divisors=(1,), nuts_chains=8, nuts_steps=20, num_svgd_particles=64,
        svgd_steps=500, width_ratios=(1.0,), ratio_steps=400, ratio_particles=64,
    )  # fmt: skip
    outcomes = perform(experiment("hard-mixture"), config)
    errors = {name: out.metrics["weight_error"].max() for name, out in outcomes.items()}
    assert errors["exact"] < 0.06
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
