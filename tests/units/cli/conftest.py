"""Runs that the tests of the command line share: each is computed only once."""

import numpy as np
import pytest
from command_line import status, TINY, TINY_GRAPH

from equistein.molecules import write_xyz


@pytest.fixture(scope="session")
def begin_fit(tmp_path_factory):
    """The command that fits forty triangles of two classes, all but the folder."""
    rng = np.random.default_rng(0)
    corners = np.array([[0, 0], [1, 0], [0, 2]]) + 0.1 * rng.normal(size=(40, 3, 2))
    classes = np.arange(40) % 2
    corners[classes == 1] *= 2
    path = tmp_path_factory.mktemp("data") / "triangles.npz"
    labels = np.where(np.arange(40) < 5, -1, classes)
    np.savez(path, x=corners.reshape(40, 6), y=labels)
    return ["fit", path, "--group", "point-cloud", "--dim", "2", *TINY, "--out"]


@pytest.fixture(scope="session")
def whole_fit(tmp_path_factory, begin_fit):
    """The folder of a finished fit of triangles of two classes."""
    out = tmp_path_factory.mktemp("fits") / "whole"
    assert status(*begin_fit, out) == 0
    return out


@pytest.fixture(scope="session")
def far_atoms():
    """Thirty molecules of HF."""
    rng = np.random.default_rng(0)
    lengths = 0.92 + 0.05 * rng.normal(size=30)
    directions = rng.normal(size=(30, 3))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    far = lengths[:, None] * directions
    return np.stack([np.zeros((30, 3)), far], axis=1) + rng.normal(size=(30, 1, 3))


@pytest.fixture(scope="session")
def molecular_run(tmp_path_factory, far_atoms):
    """The folder of a tiny fit of molecules, in one of two orders of the atoms."""
    folder = tmp_path_factory.mktemp("molecules")
    write_xyz(folder / "hf.xyz", ("H", "F"), far_atoms[:15])
    write_xyz(folder / "fh.xyz", ("F", "H"), far_atoms[15:, ::-1])
    text = (folder / "hf.xyz").read_text() + (folder / "fh.xyz").read_text()
    (folder / "both.xyz").write_text(text)
    out = folder / "run"
    arguments = ["fit", folder / "both.xyz", "--group", "point-cloud", *TINY_GRAPH]
    assert status(*arguments, "--out", out) == 0
    return out
