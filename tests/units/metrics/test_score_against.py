import jax.numpy as jnp
import numpy as np
import pytest

import equistein as es
from equistein.metrics import published_scores, score_against
from equistein.targets import DoubleWell, LennardJones, Shells

TARGET = DoubleWell(2, 2)
NUM = 300


def exact(seed, num, temperature=1.0):
    """Return exact samples: the distance of two particles in the plane by inversion."""
    ticks = np.linspace(0.5, 8.0, 20_001)
    y = ticks - 4
    weights = ticks * np.exp(-(0.9 * y**4 - 4 * y**2) / temperature)
    law = np.cumsum(weights) / np.sum(weights)
    rng = np.random.default_rng(seed)
    distance = np.interp(rng.uniform(size=num), law, ticks)
    angle = rng.uniform(0, 2 * np.pi, num)
    half = distance[:, None] / 2 * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return np.stack([half, -half], axis=1)


REFERENCE = (exact(1, 4_000), exact(2, 4_000))


def score(samples, **settings):
    settings = {"num_geometric": 20, "num_draws": 8, "reference": REFERENCE} | settings
    return score_against(samples, TARGET, **settings)


@pytest.fixture(scope="module")
def good():
    return score(exact(3, NUM))


@pytest.mark.filterwarnings("ignore:The samples fail the virial")
@pytest.mark.parametrize(("temperature", "passes"), [(1.0, True), (2.0, False)])
def test_exact_samples_are_at_the_floor_and_those_of_another_temperature_not(
    temperature, passes, good
):
    found = good if passes else score(exact(3, NUM, temperature))
    assert (found.failures == ()) == passes
    one = found.scores["energy_w2"]
    assert (abs(one.ratio - 1) < 4 * one.spread / one.floor) == passes
    assert ("no score tells" in found.verdict) == passes
    assert ("energy_w2" in found.verdict) != passes


def test_scores_and_floors_are_those_of_the_metrics(good):
    samples = jnp.asarray(exact(3, NUM))
    energies = -np.asarray([TARGET.log_density(x) for x in samples[:50]])
    assert np.allclose(good.energies["samples"][:50], energies, atol=1e-5)
    assert np.isclose(good.scores["mean_energy"].value, good.energies["samples"].mean())
    virial = es.metrics.virial(TARGET.log_density, samples)
    assert np.isclose(good.scores["virial"].value, virial, rtol=1e-5)
    assert good.scores["virial"].exact == 2
    shares = [good.scores[f"state_{i}"] for i in (1, 2)]
    assert np.isclose(sum(one.value for one in shares), 1)
    far = np.mean(np.linalg.norm(samples[:, 0] - samples[:, 1], axis=1) > 4)
    assert np.isclose(max(one.value for one in shares), max(far, 1 - far), atol=0.01)
    for one in good.scores.values():
        assert one.spread > 0
        assert one.num_samples in (NUM, 20)
        if not one.is_distance:
            assert np.isclose(one.spread, one.error, rtol=0.8)  # 8 draws
    assert good.scores["geometric_w2"].note.startswith("exact, of 20")
    assert abs(good.reference.virial - 2) < 4 * good.reference.virial_error
    assert 0 < good.reference.energy_w2 < good.scores["energy_w2"].floor


def test_rows_and_clouds_anywhere_are_made_centered_clouds_and_told(good):
    shifts = np.random.default_rng(0).normal(size=(NUM, 1, 2))
    found = score((exact(3, NUM) + 5 * shifts).reshape(NUM, 4))
    assert "cut into 2 particles" in found.notes[0]
    farthest = 5 * np.max(np.linalg.norm(shifts, axis=-1))
    assert f"up to {farthest:.3g} from the origin, were moved" in found.notes[1]
    assert good.notes == ()
    for name, one in good.scores.items():
        assert np.isclose(found.scores[name].value, one.value, atol=1e-3), name


@pytest.mark.slow
def test_repeats_are_counted_and_make_errors_larger(good):
    repeated = np.repeat(exact(3, NUM // 5), 5, axis=0)
    found = score(repeated)
    assert (found.num_distinct, found.num_samples) == (NUM // 5, NUM)
    assert np.isclose(found.effective_size, NUM / 5)
    few = score(exact(3, NUM // 5))
    one, other = (s.scores["virial"].error for s in (found, few))
    assert np.isclose(one, other, rtol=0.05)
    assert good.effective_size == good.num_distinct == NUM


def test_samples_that_fail_the_virial_are_warned_of():
    with pytest.warns(UserWarning, match="samples fail the virial.* instead of 2,"):
        found = score(1.1 * exact(3, NUM))
    assert any("virial" in warning for warning in found.warnings)
    assert "virial" in found.failures


@pytest.mark.filterwarnings("ignore:The two runs of the reference")
def test_a_reference_at_another_temperature_is_found_out():
    wrong = (exact(1, 4_000, temperature=2.0), REFERENCE[1])
    with pytest.warns(UserWarning, match="reference samples fail the virial"):
        found = score(exact(3, NUM), reference=wrong)
    assert "two runs of the reference differ" in found.warnings[-1]


def with_nan():
    points = exact(0, 10)
    points[3, 1, 0] = np.nan
    return points


@pytest.mark.parametrize(
    ("samples", "said"),
    [
        (np.zeros((10, 3, 2)), r"shape \(n, 4\).*got shape \(10, 3, 2\)"),
        (np.zeros((10, 8)), "another system"),
        (np.zeros((10, 2, 2, 1)), "got shape"),
        (exact(0, 1), "n at least 2"),
        (with_nan(), "1 of 10 are not, the first at index 3"),
        (1e20 * exact(0, 10), "10 of 10"),
        (np.ones((10, 4), int), "of type int"),
        (np.ones((10, 4), complex), "of type complex"),
        (np.array([["a"] * 4] * 3), "of type <U1"),
        (np.ones((10, 4)), "whole numbers"),
    ],
)
def test_what_cannot_be_samples_is_refused(samples, said):
    with pytest.raises(ValueError, match=said):
        score(samples)


def test_papers_have_scores_of_the_three_systems():
    for target in (DoubleWell(), LennardJones(), LennardJones(55)):
        rows = published_scores(target.name)
        assert len(rows) >= 5
        assert all(row.energy_w2 > 0 for row in rows)
    assert published_scores("dw5") == ()


def test_wrong_settings_are_refused(unchecked):
    with pytest.raises(ValueError, match="`target`"):
        score_against(exact(0, 10), Shells((4.0,), 0.5, 2))
    with pytest.raises(ValueError, match="`num_draws`"):
        score(exact(0, 10), num_draws=1)
    with pytest.raises(ValueError, match="at least twice as many"):
        score(exact(0, 10), reference=(exact(1, 100), exact(2, 19)))
