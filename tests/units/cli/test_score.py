import json

import jax.numpy as jnp
import numpy as np
import pytest
from command_line import status

from equistein.targets import DoubleWell

NEAR = np.array([[-1.2, -1.2], [-1.2, 1.2], [1.2, -1.2], [1.2, 1.2]], np.float32)


def clouds(seed, num, noise=0.15):
    """Return clouds near a square, in place of exact samples, which take long."""
    rng = np.random.default_rng(seed)
    points = NEAR + noise * rng.normal(size=(num, 4, 2)).astype(np.float32)
    return points - points.mean(axis=1, keepdims=True)


@pytest.fixture(autouse=True)
def _quick(monkeypatch, request):
    monkeypatch.delenv("EQUISTEIN_DATA", raising=False)
    monkeypatch.setattr(DoubleWell, "num_reference", 160)
    monkeypatch.setattr(DoubleWell, "has_few_states", False)
    monkeypatch.setattr(
        DoubleWell, "reference", lambda self, num, part: jnp.asarray(clouds(part, num))
    )


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "x.npy"
    np.save(path, clouds(7, 40).reshape(40, 8))
    return path


@pytest.mark.slow
def test_the_answer_comes_first_then_scores_and_papers(file, tmp_path, capsys):
    out = tmp_path / "scored"
    arguments = ("score", file, "--target", "dw4")
    assert status(*arguments, "--evaluations", 200_000, "--out", out) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("40 samples of dw4: no score tells them from")
    for name in ("energy_w2", "geometric_w2", "distance_tv", "mean_energy", "virial"):
        assert any(line.startswith(f"{name} ") for line in lines)
    assert any(line.startswith("> these samples") for line in lines)
    told = json.loads((out / "metrics.json").read_text())
    assert told["evaluations"] == 200_000
    assert told["samples"]["energy_w2"] > 0
    assert (out / "figures" / "score.png").stat().st_size > 10_000
    # A second time the folder is not empty.
    assert status(*arguments, "--out", out) == 2
    assert "not a new or empty folder" in capsys.readouterr().err


def test_wider_clouds_are_told_from_the_reference(tmp_path, capsys):
    path = tmp_path / "wide.npz"
    np.savez(path, x=clouds(7, 40, noise=0.5))
    assert status("score", path, "--target", "dw4") == 0
    answer = capsys.readouterr().out.splitlines()[0]
    assert "not exact in" in answer
    assert "times the floor" in answer


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (clouds(0, 10)[:, :3], "got shape (10, 3, 2)"),
        (np.full((10, 8), np.nan, np.float32), "finite"),
        (np.ones((10, 8), int), "whole numbers"),
        (np.ones((10, 39), np.float32) / 3, "another system"),
    ],
)
def test_a_file_of_something_else_is_refused(values, said, tmp_path, capsys):
    np.save(tmp_path / "x.npy", values)
    assert status("score", tmp_path / "x.npy", "--target", "dw4") == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--evaluations", "-5"], "--evaluations"),
        (["--evaluations", "nan"], "--evaluations"),
        (["--target", "dw5"], "dw4"),
    ],
)
def test_wrong_settings_are_refused(arguments, said, file, capsys):
    target = [] if "--target" in arguments else ["--target", "dw4"]
    assert status("score", file, *target, *arguments) == 2
    assert said in capsys.readouterr().err


def test_a_missing_file_is_refused(tmp_path, capsys):
    assert status("score", tmp_path / "none.npy", "--target", "dw4") == 2
    assert "There is no file" in capsys.readouterr().err
