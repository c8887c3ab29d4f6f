"""Images at the command line."""

import json

import numpy as np
import pytest
from command_line import status, TINY_IMAGES


def save_images(path, shape):
    rng = np.random.default_rng(0)
    np.savez(path, x=rng.random((40, *shape)), y=np.arange(40) % 2)


@pytest.mark.slow
def test_images_are_fitted_and_drawn(tmp_path, capsys):
    save_images(tmp_path / "images.npz", (6, 6))
    data, group = tmp_path / "images.npz", "image-rotations"
    arguments = ["fit", data, "--group", group, *TINY_IMAGES]
    out = tmp_path / "run"
    assert status(*arguments, "--start", "normals", "--out", out) == 0
    assert (out / "figures" / "samples.png").exists()
    metrics = json.loads((out / "metrics.json").read_text())
    assert 0 <= metrics["model"]["held_out_accuracy"] <= 1
    new = tmp_path / "new.npz"
    assert status("sample", out, "--label", 1, "--num-samples", 3, "--out", new) == 0
    with np.load(new) as stored:
        assert stored["x"].shape == (3, 6, 6)
        assert np.all(np.isfinite(stored["x"]))
