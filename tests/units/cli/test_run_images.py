"""The experiment `images` without its training."""

import numpy as np
import pytest
from command_line import status

from equistein.data import DataError
from equistein.experiments import EXPERIMENTS
from equistein.experiments.images._data import few_labels, image_sets
from equistein.groups import ImageRotations
from equistein.runs import Outcome

IMAGES = EXPERIMENTS["images"]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["--models", "convolutional"], "`models` must be of density"),
        (["--fields", "2", "2"], "`fields` of at least 4 layers"),
        (["--radii"], "`radii`"),
        (
            ["--labeled-fraction", "1.5"],
            "`labeled_fraction` must be a finite number above 0, below 1",
        ),
        (["--fit.batch-size", "2000"], "`fit.batch_size` must be at most 1000"),
    ],
)
def test_wrong_settings_are_refused_before_anything_is_written(
    given, words, tmp_path, capsys
):
    out = tmp_path / "run"
    assert status("run", "images", "--preset", "smoke", *given, "--out", out) == 2
    assert words in capsys.readouterr().err
    assert not out.exists()


def test_missing_images_are_told_before_anything_is_written(
    tmp_path, capsys, monkeypatch
):
    monkeypatch.setenv("EQUISTEIN_DATA", str(tmp_path))
    monkeypatch.setenv("EQUISTEIN_CACHE", str(tmp_path / "cache"))
    out, given = tmp_path / "run", ["--dataset", "fashion-mnist", "--no-download"]
    assert status("run", "images", "--preset", "smoke", *given, "--out", out) == 2
    assert "folder fashion_mnist of $EQUISTEIN_DATA" in capsys.readouterr().err
    assert not out.exists()


@pytest.mark.slow
def test_test_images_are_turned_and_training_images_are_not():
    sets = image_sets("digits", False, 20)
    group = ImageRotations()
    turns = np.array(
        [
            np.argmin(np.abs(group.orbit(a) - b[None]).sum(axis=(1, 2, 3)))
            for a, b in zip(sets.upright[:60], sets.rotated[:60], strict=True)
        ]
    )
    assert set(turns.tolist()) == {0, 1, 2, 3}
    assert set(sets.outliers) == {"shuffled", "noise"}
    shuffled = np.sort(np.asarray(sets.outliers["shuffled"]).reshape(20, -1))
    assert np.array_equal(
        shuffled, np.sort(np.asarray(sets.upright[:20]).reshape(20, -1))
    )
    assert len(sets.train) == len(sets.labels) == 1438


def test_few_labels_come_first_and_make_their_share():
    sets = image_sets("digits", False, 20)
    images, labels = few_labels(sets, 10, 0.25, 3)
    known = np.asarray(labels) >= 0
    assert np.isclose(known.mean(), 0.25, atol=0.02)
    assert known[0]
    assert not known[-1]
    assert len(set(np.asarray(labels)[:60].tolist())) == 10
    assert len(np.unique(np.asarray(images)[known], axis=0)) == 100
    assert np.all(np.bincount(np.asarray(labels)[known]) == known.sum() // 10)
    again = few_labels(sets, 10, 0.25, 3)[1]
    assert np.array_equal(labels, again)
    other = few_labels(sets, 10, 0.25, 4)[0]
    assert not np.array_equal(images, other)


def test_never_over_never_is_no_ratio():
    config = IMAGES.presets["quick"]
    outcomes = {
        name: Outcome(
            metrics={"iterations_to_0.8": np.array(values)}, samples=np.zeros((1, 1))
        )
        for name, values in (
            ("equivariant-svgd", [200.0, np.inf, 100.0]),
            ("equivariant", [100.0, np.inf, np.inf]),
        )
    }
    found = IMAGES.compare(config, outcomes)["equivariant"]["iterations_to_0.8_ratio"]
    assert np.array_equal(found, [0.5, np.nan, np.inf], equal_nan=True)


def test_fashion_mnist_that_is_not_at_hand_is_told(tmp_path, monkeypatch):
    monkeypatch.setenv("EQUISTEIN_CACHE", str(tmp_path))
    monkeypatch.delenv("EQUISTEIN_DATA", raising=False)
    with pytest.raises(DataError, match="not at hand.*--dataset digits"):
        image_sets.__wrapped__("fashion-mnist", False, 20)
