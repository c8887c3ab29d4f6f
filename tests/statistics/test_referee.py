import os
import pathlib

import numpy as np
import pytest

from equistein.metrics import score_against
from equistein.targets import DoubleWell, LennardJones

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("single_precision")]


@pytest.fixture
def published():
    """Return a file of the data folder, where it is at hand."""

    def read(path):
        file = pathlib.Path(os.environ.get("EQUISTEIN_DATA", "")).expanduser() / path
        if not file.is_file():
            pytest.skip(f"$EQUISTEIN_DATA names no folder with {path}")
        return np.load(file, allow_pickle=False)

    return read


@pytest.mark.parametrize(
    ("target", "floor"), [(DoubleWell(), 0.131), (LennardJones(), 0.446)]
)
@pytest.mark.parametrize(("hot", "passes"), [(1.0, True), (1.3, False)])
@pytest.mark.filterwarnings("ignore:The samples fail the virial")
def test_exact_samples_are_at_the_floor(target, floor, hot, passes, key):
    # The findings, sections 3 and 9: the floor of the energies at n = 1 000.
    warm = type(target)(temperature=hot)
    samples = warm.sample(key, 1_000)
    found = score_against(samples, target, num_geometric=100)
    one = found.scores["energy_w2"]
    assert abs(one.floor / floor - 1) < 0.2
    assert (abs(one.value - one.floor) < 4 * one.spread) == passes
    assert (found.failures == ()) == passes
    assert found.reference.passes
    assert found.reference.energy_w2 < one.floor


@pytest.mark.filterwarnings("ignore:The samples fail the virial")
def test_published_files_of_dw4_are_as_described(published):
    # The findings, section 3, and the notes beside the data.
    target = DoubleWell()
    found = score_against(published("dw4/test_split_DW4.npy"), target, num_draws=4)
    assert found.num_distinct == 7_750
    assert abs(found.scores["mean_energy"].value + 22.450) < 1e-3
    shares = [found.scores[f"state_{i}"].value for i in range(1, 6)]
    assert np.allclose(shares, [0.41, 0.47, 0.06, 0.05, 0.006], atol=0.01)
    # Its energies are two floors away, of which draws differ by a third.
    assert found.scores["energy_w2"].value > 1.5 * found.scores["energy_w2"].floor
    assert {"state_1", "state_2", "mean_energy"} <= set(found.failures)
    found = score_against(published("dw4/fixed_DW4.npy"), target)
    shares = [found.scores[f"state_{i}"].value for i in range(1, 6)]
    assert np.allclose(shares, 0.2, atol=1e-6)
    assert abs(found.scores["mean_energy"].value + 23.314) < 1e-3
    found = score_against(published("dw4/dimer_4particles.npy"), target)
    assert found.scores["state_4"].value > 0.998
    assert abs(found.scores["mean_energy"].value + 22.142) < 1e-3


def test_published_files_of_lj13_are_as_described(published):
    first = published("lj13/test_split_LJ13-1000.npy")
    found = score_against(first[:1_000], LennardJones(), published=first)
    assert found.num_samples == 1_000
    assert abs(found.scores["mean_energy"].value + 43.1) < 1
    assert found.published["num"] == 10_000
