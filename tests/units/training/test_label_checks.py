"""Labels are checked before anything is trained."""

import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from by_hand import bowl, divergence_of, fit, Ramps

from equistein.energies import JointEnergy
from equistein.training import check_classes, CrossEntropy, SquaredError

CLASSES = [0, 1, 2, 1, -1, 0]


@pytest.fixture
def data(key):
    return jr.normal(key, (6, 2))


@pytest.fixture
def energy(key):
    return JointEnergy(Ramps(jr.normal(key, (3, 2))))


@pytest.fixture
def never(monkeypatch):
    """Make a fit that gets as far as training fail."""

    def began(*arguments, **options):
        raise AssertionError("the fit began")

    monkeypatch.setattr("equistein.training._fit.Loop", began)


@pytest.mark.parametrize(
    "labels",
    [
        None,
        [0, 1, 2, 1, 0],
        [[0, 1, 2, 1, 0, 1]],
        [0, 1, 3, 1, -1, 0],
        [0, 1, -2, -2, 1, 0],
        [1, 1, 1, -1, 1, 1],
        [-1, -1, -1, -1, -1, -1],
        [0.0, 1.0, 2.0, 1.0, 0.0, 1.0],
        [0.0, 1.0, np.nan, 1.0, 0.0, 1.0],
        ["a", "b", "a", "b", "a", "b"],
        [True, False, True, True, False, True],
    ],
)
def test_wrong_classes_are_refused_before_the_fit_begins(
    labels, key, data, energy, never, tmp_path
):
    path = tmp_path / "fit.eqx"
    objective = divergence_of(data) + CrossEntropy()
    with pytest.raises(ValueError, match="labels"):
        fit(key, energy, data, objective, labels=labels, batch_size=4, checkpoint=path)
    assert not path.exists()


@pytest.mark.parametrize(
    "labels",
    [
        None, [0.5] * 5, CLASSES, [0.5, np.inf, 0.1, 0.2, 0.3, 0.4], [np.nan] * 6,
        ["a"] * 6,
    ],
)  # fmt: skip
def test_wrong_energies_are_refused_before_the_fit_begins(labels, key, data, never):
    with pytest.raises(ValueError, match="labels"):
        fit(key, bowl(), data, SquaredError(), labels=labels, batch_size=4)
    with pytest.raises(ValueError, match="JointEnergy"):
        fit(key, bowl(), data, CrossEntropy(), labels=CLASSES, batch_size=4)


@pytest.mark.parametrize(
    "kind", [list, np.array, jnp.array, lambda x: np.array(x, "i1")]
)
def test_right_classes_are_taken_in_any_form(kind, key, data, energy):
    found = fit(key, energy, data, CrossEntropy(), labels=kind(CLASSES), batch_size=6)
    assert np.isfinite(found.history["cross_entropy"]).all()
    assert found.history["num_labels"] == 5


def test_classes_are_numbered_from_zero_on_without_gaps():
    for kind in (int, np.uint8):
        assert np.array_equal(check_classes(np.array([2, 1, 0], kind)), [2, 1, 0])
    assert np.array_equal(check_classes(np.array([1, -1, 0])), [1, -1, 0])
    assert np.array_equal(check_classes(np.array([2, 0]), 3), [2, 0])
    for wrong in ([2, -3, 0], [], [2, 0], [2, 1]):
        with pytest.raises(ValueError, match="labels"):
            check_classes(np.array(wrong, int))
