"""Images at the command line."""

import json

import numpy as np
import pytest
from command_line import status
from PIL import Image

from equistein.data import read_image_folder


@pytest.mark.slow
def test_a_folder_of_images_is_fitted_by_an_energy_made_for_densities(tmp_path):
    rng = np.random.default_rng(0)
    for number in range(40):
        file = tmp_path / "data" / "ab"[number % 2] / f"{number:02}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(0, 256, (6, 6), np.uint8)).save(file)
    tiny = "--num-epochs 2 --epoch-batches 2 --batch-size 8 --fields 2 2 --num-blocks 1"
    tiny += " --network unet --sample-steps 3 --num-samples 6 --ais-steps 10"
    data, out, group = tmp_path / "data", tmp_path / "run", "image-reflections"
    assert status("fit", data, "--group", group, *tiny.split(), "--out", out) == 0
    metrics = json.loads((out / "metrics.json").read_text())
    assert metrics["entries"]["model"]["bits_per_dimension"] > 0
    assert 0 <= metrics["entries"]["model"]["held_out_accuracy"] <= 1
    assert (out / "figures" / "samples.png").exists()
    new = tmp_path / "new.npz"
    assert status("sample", out, "--label", 1, "--num-samples", 3, "--out", new) == 0
    with np.load(new) as stored:
        assert stored["x"].shape == (3, 6, 6, 1)
        assert np.all(np.isfinite(stored["x"]))
    folder, few = tmp_path / "new", ["--num-samples", 3]
    assert status("sample", out, "--label", "b", *few, "--out", folder) == 0
    assert read_image_folder(folder)[0].shape == (3, 6, 6, 1)
    assert status("sample", out, "--label", "c", "--out", tmp_path / "other") == 2
    assert status("sample", out, "--out", folder) == 2  # it is there already
    (data / "a" / "00.png").unlink()
    assert status("resume", out) == 2  # other images than it was started with


@pytest.mark.slow
@pytest.mark.heavy
def test_digits_are_learned_with_the_defaults(tmp_path):
    datasets = pytest.importorskip("sklearn.datasets")
    # All upright: copies of the class normals are much wider if they are not.
    bunch = datasets.load_digits()
    np.savez(tmp_path / "digits.npz", x=bunch.images[:900], labels=bunch.target[:900])
    words = ("--group", "image-rotations", "--out", tmp_path / "run")
    assert status("fit", tmp_path / "digits.npz", *words) == 0
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert metrics["entries"]["model"]["held_out_accuracy"] >= 0.95
    assert metrics["entries"]["model"]["nats_above_normals"] >= 5
