import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from equistein.energies import energy_for
from equistein.groups import Trivial
from equistein.training import check_classes, fit, FitConfig

CONFIG = FitConfig(num_epochs=1, batch_size=4, num_particles=4, num_steps=1)
CLASSES = [0, 1, 2, 1, -1, 0]


@pytest.fixture
def data(key):
    return jr.normal(key, (6, 2))


def never_begins(monkeypatch):
    """Make a fit that gets as far as training fail."""

    def began(*arguments, **options):
        raise AssertionError("the fit began")

    monkeypatch.setattr("equistein.training._fit.Loop", began)


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        (None, "`labels` are missing: a JointEnergy needs the class"),
        ([0, 1, 2, 1, 0], r"one number for each of the 6 data points.*\(5,\)"),
        ([[0, 1, 2, 1, 0, 1]], r"each of the 6 data points.*\(1, 6\)"),
        ([0, 1, 3, 1, -1, 0], "from 0 to 2, or -1 .*1 are not, the first 3 at index 2"),
        ([0, 1, -2, -2, 1, 0], "2 are not, the first -2 at index 2"),
        ([1, 1, 1, -1, 1, 1], "at least two classes, but hold the class 1 alone"),
        ([-1, -1, -1, -1, -1, -1], "at least two classes, but hold none"),
        ([0.0, 1.0, 2.0, 1.0, 0.0, 1.0], "whole numbers.*float64.*astype"),
        ([0.0, 1.0, np.nan, 1.0, 0.0, 1.0], "whole numbers"),
        (["a", "b", "a", "b", "a", "b"], "whole numbers"),
        ([True, False, True, True, False, True], "whole numbers.*bool"),
    ],
)
def test_wrong_classes_are_refused_before_the_fit_begins(
    labels, words, key, data, monkeypatch, tmp_path
):
    never_begins(monkeypatch)
    energy = energy_for(key, Trivial(), data, num_classes=3, widths=(4,))
    path = tmp_path / "fit.eqx"
    with pytest.raises(ValueError, match=words):
        fit(key, energy, data, CONFIG, labels=labels, checkpoint=path)
    assert not path.exists()


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        ([0.5] * 5, r"one number for each of the 6 data points.*\(5,\)"),
        (CLASSES, "look like classes, but PlainEnergy has none.*num_classes=K"),
        ([0.5, np.inf, 0.1, 0.2, 0.3, 0.4], "some are infinite"),
        ([np.nan] * 6, "all are NaN"),
        (["a"] * 6, "look like classes"),
    ],
)
def test_wrong_energies_are_refused_before_the_fit_begins(
    labels, words, key, data, monkeypatch
):
    never_begins(monkeypatch)
    energy = energy_for(key, Trivial(), data, widths=(4,))
    with pytest.raises(ValueError, match=words):
        fit(key, energy, data, CONFIG, labels=labels)


@pytest.mark.parametrize(
    "kind", [list, np.array, jnp.array, lambda x: np.array(x, "i1")]
)
def test_right_classes_are_taken_in_any_form(kind, key, data):
    energy = energy_for(key, Trivial(), data, num_classes=3, widths=(4,))
    found = fit(key, energy, data, CONFIG, labels=kind(CLASSES))
    assert np.isfinite(found.history["supervised_loss"]).all()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda x: x[:3], "holds 3 points, fewer than a batch of 4.*at most 3"),
        (lambda x: x.at[3, 0].set(jnp.nan), "`data` must be finite.* index 3"),
        (lambda x: x.at[3, 0].set(-jnp.inf), "`data` must be finite.* index 3"),
        (lambda x: x[:, :0], "at least one point"),
        (lambda x: x[:, 0], "`data` must have shape"),
        (lambda x: x.astype(int), "floating point"),
    ],
)
def test_wrong_data_are_refused_before_the_fit_begins(
    change, words, key, data, monkeypatch, unchecked
):
    never_begins(monkeypatch)
    energy = energy_for(key, Trivial(), data, widths=(4,))
    with pytest.raises(ValueError, match=words):
        fit(key, energy, change(data), CONFIG)


def test_a_constant_column_has_no_energy(key, data):
    with pytest.raises(ValueError, match="constant, the first at index 1.*Drop"):
        energy_for(key, Trivial(), data.at[:, 1].set(3.0))


@pytest.mark.parametrize("label", [-1, 3, 1.0, True, "a"])
def test_a_class_that_is_none_is_not_drawn_from(label, key, data, unchecked):
    energy = energy_for(key, Trivial(), data, num_classes=3, widths=(4,))
    fitted = fit(key, energy, data, CONFIG, labels=CLASSES)
    with pytest.raises(ValueError, match="`label` must be a class from 0 to 2"):
        fitted.sample(key, 2, label=label)


def test_an_energy_without_classes_has_none_to_draw_from(key, data):
    energy = energy_for(key, Trivial(), data, widths=(4,))
    fitted = fit(key, energy, data, CONFIG)
    with pytest.raises(ValueError, match="`label` was 0, but this energy has no class"):
        fitted.sample(key, 2, label=0)


def test_the_number_of_classes_is_the_largest_plus_one():
    assert np.array_equal(check_classes(np.array([2, -1, 0])), [2, -1, 0])
    with pytest.raises(ValueError, match="from 0 to 2"):
        check_classes(np.array([2, -3, 0]))
    with pytest.raises(ValueError, match="hold none"):
        check_classes(np.array([], int))
