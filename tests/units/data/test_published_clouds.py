import os

import numpy as np
import pytest

from equistein.data import DataError, published_clouds


def test_published_clouds_are_centered_or_missing(tmp_path, monkeypatch):
    monkeypatch.delenv("EQUISTEIN_DATA", raising=False)
    assert published_clouds("dw4/some.npy", 4, 2) is None
    monkeypatch.setenv("EQUISTEIN_DATA", str(tmp_path))
    assert published_clouds("dw4/some.npy", 4, 2) is None
    os.makedirs(tmp_path / "dw4")
    rows = np.arange(24, dtype=np.float32).reshape(3, 8) ** 2
    np.save(tmp_path / "dw4" / "some.npy", rows)
    clouds = published_clouds("dw4/some.npy", 4, 2)
    assert clouds.shape == (3, 4, 2)
    assert np.allclose(clouds.mean(axis=1), 0, atol=1e-4)
    with pytest.raises(DataError, match="clouds of 5 particles"):
        published_clouds("dw4/some.npy", 5, 2)
    with pytest.raises(DataError, match="do not divide"):
        published_clouds("dw4/some.npy", 4, 3)
