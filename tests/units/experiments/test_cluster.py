import dataclasses

import numpy as np
import pytest

from equistein.runs import seed_outcome
from experiments.cluster import CLUSTER, ClusterConfig, compare, mean_with_error


def test_the_error_is_that_of_independent_chains():
    """Chains that differ have an error, however many samples each has."""
    chains = np.random.default_rng(0).normal(size=400)
    one, many = (np.repeat(chains[None], num, axis=0) for num in (1, 50))
    assert mean_with_error(many) == pytest.approx(mean_with_error(one))
    mean, error = mean_with_error(many)
    assert error == pytest.approx(1 / 20, rel=0.1)
    assert abs(mean) < 4 * error


def test_chains_are_compared_with_tempering_in_joint_errors():
    def outcome(mean, error):
        numbers = {"mean_energy": mean, "mean_energy_error": error}
        return seed_outcome(numbers, np.zeros((2, 13, 3)))

    outcomes = {"mala-Cu13": outcome(1.0, 0.3), "tempering-Cu13": outcome(2.0, 0.4)}
    config = ClusterConfig()
    assert compare(config, outcomes)["mala-Cu13"]["gap_in_errors"] == 2
    assert compare(config, {}) == {}


def test_tempering_s_curve_is_drawn_over_the_histogram_of_each_sampler():
    rng = np.random.default_rng(0)

    def shown(names):
        entries = {entry.name: entry for entry in CLUSTER.entries(ClusterConfig())}
        for number, name in enumerate(names):
            array = {f"energies_{name[-4:-2]}": rng.normal(number, 1, 400)}
            entry = dataclasses.replace(entries[name], label=name, color=number)
            yield entry, seed_outcome({}, np.zeros((2, 13, 3)), arrays=array)

    copper, gold = CLUSTER.figures[:2]
    both = list(shown(["mala-Cu13", "tempering-Cu13"]))
    mala, tempering = copper.draw(ClusterConfig(), both).axes
    (over,), (own,) = mala.lines, tempering.lines
    assert np.array_equal(over.get_ydata(), own.get_ydata())
    center = np.average(own.get_xdata(), weights=own.get_ydata())
    assert center == pytest.approx(1, abs=0.2)  # tempering's, not that of the chains
    assert gold.draw(ClusterConfig(), both) is None
    (alone,) = copper.draw(ClusterConfig(), both[:1]).axes
    assert not alone.lines
