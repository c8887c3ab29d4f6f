import pytest

from equistein.metrics import score_against
from equistein.targets import DoubleWell

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("single_precision")]


@pytest.mark.parametrize(("hot", "passes"), [(1.0, True), (1.3, False)])
@pytest.mark.filterwarnings("ignore:The samples fail the virial")
def test_exact_samples_are_at_the_floor(hot, passes, key):
    # The findings, section 3: the floor of the energies at n = 1 000 is .131.
    target = DoubleWell()
    samples = DoubleWell(temperature=hot).sample(key, 1_000)
    found = score_against(samples, target, num_geometric=100)
    one = found.scores["energy_w2"]
    assert abs(one.floor / 0.131 - 1) < 0.2
    assert (abs(one.value - one.floor) < 4 * one.spread) == passes
    assert (found.failures == ()) == passes
    assert found.warnings == () or not passes
    assert found.reference.energy_w2 < one.floor
