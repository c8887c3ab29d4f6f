import pickle

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import equistein as es

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("default"),  # scikit-learn's own, in its checks
    pytest.mark.usefixtures("single_precision"),
]

TINY = es.models.ContrastiveSettings(
    num_epochs=1, batch_size=4, widths=(4,), num_particles=8, num_steps=2,
    sample_steps=5,
)  # fmt: skip


@pytest.fixture(scope="module")
def corners():
    """Points about the corners of a square, of two classes by their radius."""
    rng = np.random.default_rng(0)
    turns = rng.integers(0, 4, 200) * np.pi / 2
    labels = np.where(np.arange(200) % 2, "far", "near")
    radii = np.where(labels == "far", 3.0, 1.5)[:, None]
    points = radii * np.stack([np.cos(turns), np.sin(turns)], axis=1)
    return points + 0.2 * rng.normal(size=(200, 2)), labels


@pytest.fixture(scope="module")
def classifier(corners, as_users):
    settings = es.models.ContrastiveSettings(
        num_epochs=40, batch_size=50, widths=(32, 32), num_particles=64
    )
    with as_users():
        model = es.EnergyModel("cyclic:4", settings=settings, random_state=0)
        return model.fit(*corners)


@pytest.mark.usefixtures("unchecked")
def test_scikit_learn_s_own_checks_pass():
    results = check_estimator(
        es.EnergyModel(settings=TINY, ais_steps=0, random_state=0),
        on_fail=None, on_skip=None,
    )  # fmt: skip
    others = {r["check_name"]: r for r in results if r["status"] != "passed"}
    # That of arrays of other libraries asks for a switch of SciPy, before any import.
    assert set(others) == {"check_array_api_input"}
    (other,) = others.values()
    assert other["status"] == "skipped"
    assert "SCIPY_ARRAY_API is not set" in str(other["exception"])
    assert len(results) - len(others) >= 40


def test_classes_are_predicted_for_turned_points_too(classifier, corners):
    points, labels = corners
    turned = points @ np.array([[0.0, -1], [1, 0]])
    assert classifier.score(points, labels) > 0.95
    column = np.asarray(labels)[:, None]
    assert classifier.score(points, column) == classifier.score(points, labels)
    assert np.array_equal(classifier.predict(turned), classifier.predict(points))
    found = classifier.predict_proba(points)
    assert np.allclose(found.sum(axis=1), 1, atol=1e-5)
    assert list(classifier.classes_) == ["far", "near"]
    shuffled = np.random.default_rng(1).permutation(labels)
    assert classifier.score(points, shuffled) < 0.7


def test_densities_are_of_the_fit_and_integrate_to_one(classifier, corners):
    points, _ = corners
    side = np.linspace(-8, 8, 161)
    grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    total = np.exp(classifier.score_samples(grid)).sum() * 0.1**2
    assert total == pytest.approx(1, abs=0.2)
    assert classifier.score(points) == pytest.approx(
        classifier.score_samples(points).mean(), abs=1e-5
    )
    assert classifier.sample(7, random_state=0).shape == (7, 2)


def test_it_is_pickled_cloned_and_searched(classifier, corners):
    points, _ = corners
    again = pickle.loads(pickle.dumps(classifier))
    assert np.array_equal(again.predict_proba(points), classifier.predict_proba(points))
    search = GridSearchCV(
        make_pipeline(StandardScaler(), es.EnergyModel(settings=TINY, random_state=0)),
        {"energymodel__group": ["trivial", "cyclic:4"]}, cv=2,
    )  # fmt: skip
    search.fit(points)
    assert set(search.cv_results_["param_energymodel__group"]) == {
        "trivial", "cyclic:4",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("options", "y", "said"),
    [
        ({"shape": (4, 2)}, None, "`shape`"),
        ({"group": "point-cloud"}, None, "`shape`"),
        ({"group": "square"}, None, "no group"),
        ({}, np.zeros(20), "alone"),
    ],
)
def test_what_does_not_do_is_named(options, y, said):
    rows = np.random.default_rng(0).normal(size=(20, 6))
    with pytest.raises(ValueError, match=said):
        es.EnergyModel(settings=TINY, **options).fit(rows, y)


def test_what_was_not_fitted_says_so(corners):
    points, _ = corners
    with pytest.raises(NotFittedError):
        es.EnergyModel().predict(points)
    model = es.EnergyModel(settings=TINY, ais_steps=0).fit(points)
    with pytest.raises(ValueError, match="no classes"):
        model.predict(points)
