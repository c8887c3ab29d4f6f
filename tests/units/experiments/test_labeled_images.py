"""Labeled images: files that are damaged, or missing."""

import gzip
import hashlib
import os
import pathlib

import numpy as np
import pytest

from equistein.data import DataError
from experiments._labeled_images import labeled_images

PUBLISHED = pathlib.Path(os.environ.get("EQUISTEIN_DATA", "")) / "fashion_mnist"
needs_published = pytest.mark.skipif(
    not PUBLISHED.is_dir(), reason="$EQUISTEIN_DATA/fashion_mnist is not there"
)


def test_the_digits_are_split_in_five():
    train, test = (labeled_images("digits", part) for part in ("train", "test"))
    assert train.pixels.shape == (1438, 8, 8, 1)
    assert test.pixels.shape == (359, 8, 8, 1)
    assert train.pixels.min() == 0
    assert train.pixels.max() == 1
    assert np.all(np.bincount(test.labels) > 25)
    assert test.names == tuple("0123456789")


def test_images_that_are_not_at_hand_are_none(tmp_path, monkeypatch):
    monkeypatch.setenv("EQUISTEIN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("EQUISTEIN_DATA", str(tmp_path / "data"))
    assert labeled_images("fashion-mnist", "test") is None
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize("where", ["data/fashion_mnist", "cache"])
def test_a_file_that_does_not_match_its_checksum_is_refused(
    where, tmp_path, monkeypatch
):
    monkeypatch.setenv("EQUISTEIN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("EQUISTEIN_DATA", str(tmp_path / "data"))
    name = "t10k-images-idx3-ubyte.gz"
    name = name if "data" in where else f"fashion-mnist-{name}"
    path = tmp_path / where / name
    path.parent.mkdir(parents=True)
    path.write_bytes(gzip.compress(b"other"))
    with pytest.raises(DataError, match="does not match its checksum.*Delete it"):
        labeled_images("fashion-mnist", "test", download=True)


def test_a_download_that_does_not_match_leaves_nothing_behind(tmp_path, monkeypatch):
    import pooch

    monkeypatch.setenv("EQUISTEIN_CACHE", str(tmp_path))
    monkeypatch.delenv("EQUISTEIN_DATA", raising=False)

    class Wrong:
        def __call__(self, url, output_file, pooch):
            pathlib.Path(output_file).write_bytes(b"wrong")

    monkeypatch.setattr(pooch.core, "choose_downloader", lambda *a, **k: Wrong())
    with pytest.raises(DataError, match="fashion-mnist could not be fetched"):
        labeled_images("fashion-mnist", "test", download=True)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


@needs_published
def test_fashion_mnist_is_read_from_the_folder():
    images = labeled_images("fashion-mnist", "test")
    assert images.pixels.shape == (10_000, 28, 28, 1)
    assert np.bincount(images.labels).tolist() == [1_000] * 10
    assert images.names[9] == "ankle boot"
    digest = hashlib.sha256((255 * images.pixels).round().astype(np.uint8).tobytes())
    with gzip.open(PUBLISHED / "t10k-images-idx3-ubyte.gz") as file:
        assert digest.hexdigest() == hashlib.sha256(file.read()[16:]).hexdigest()
