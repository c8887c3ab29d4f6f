"""The one file format: what it holds, and what it refuses."""

import io
import zipfile

import numpy as np
import pytest

from equistein._limits import LimitError
from equistein._serialization import (
    FileFormatError,
    load_arrays,
    save_arrays,
    VERSION,
)

ARRAYS = {"x": np.arange(6.0).reshape(2, 3), "n": np.array(4), "b": np.array([True])}
HEADER = {"seed": 1, "names": ["a", "ä"]}


@pytest.fixture
def path(tmp_path):
    save_arrays(tmp_path / "a.npz", "sample", HEADER, ARRAYS)
    return tmp_path / "a.npz"


def test_arrays_and_header_are_read_again(path):
    header, arrays = load_arrays(path, "sample")
    assert header == HEADER
    assert set(arrays) == set(ARRAYS)
    for name, array in ARRAYS.items():
        assert arrays[name].dtype == array.dtype
        assert np.array_equal(arrays[name], array)
    assert [file.name for file in path.parent.iterdir()] == ["a.npz"]
    with np.load(path, allow_pickle=False) as others:  # NumPy reads it too
        assert np.array_equal(others["x"], ARRAYS["x"])


def test_the_same_content_is_the_same_bytes(path):
    save_arrays(path.with_name("b.npz"), "sample", HEADER, ARRAYS)
    assert path.with_name("b.npz").read_bytes() == path.read_bytes()


@pytest.mark.parametrize(
    "content", [b"", b"\n", b"no archive", b"PK\x03\x04 half", b"\x89PNG\r\n\x1a\n"]
)
def test_another_file_is_refused_with_the_remedy(content, path):
    path.write_bytes(content)
    with pytest.raises(FileFormatError, match="a.npz .*sample.*: delete it"):
        load_arrays(path, "sample", "delete it")


@pytest.mark.parametrize("fraction", [0.1, 0.3, 0.5, 0.7, 0.9, 0.999])
@pytest.mark.parametrize("kind", ["flipped", "cut"])
def test_a_damaged_file_is_refused_or_reads_the_same(fraction, kind, path):
    content = bytearray(path.read_bytes())
    index = int(fraction * len(content))
    content[index] ^= 4
    path.write_bytes(bytes(content if kind == "flipped" else content[:index]))
    try:
        header, arrays = load_arrays(path, "sample")
    except FileFormatError:
        return
    # Some bytes of an archive, such as a date, are no content.
    assert kind == "flipped"
    assert header == HEADER
    assert all(np.array_equal(arrays[name], ARRAYS[name]) for name in ARRAYS)


def test_numbers_that_were_edited_are_refused(path):
    with np.load(path) as stored:
        parts = {name: stored[name] for name in stored.files}
    np.savez(path, **parts | {"x": np.zeros((2, 3))})
    with pytest.raises(FileFormatError, match="checksum"):
        load_arrays(path, "sample")


def test_another_kind_or_version_is_refused(path, monkeypatch):
    with pytest.raises(FileFormatError, match="holds a sample of version 1, not a mod"):
        load_arrays(path, "model")
    monkeypatch.setattr("equistein._serialization.VERSION", VERSION + 1)
    with pytest.raises(FileFormatError, match="version"):
        load_arrays(path, "sample")


def test_pickles_are_never_read(path):
    np.savez(path, x=np.array([{}], object))
    with pytest.raises(FileFormatError):
        load_arrays(path, "sample")


def test_what_would_not_fit_into_memory_is_not_unpacked(path, monkeypatch):
    content = io.BytesIO()
    np.savez_compressed(content, x=np.zeros(100_000))
    path.write_bytes(content.getvalue())
    monkeypatch.setenv("EQUISTEIN_MAX_BYTES", "500000")
    with pytest.raises(LimitError, match="EQUISTEIN_MAX_BYTES"):
        load_arrays(path, "sample")


def test_an_archive_that_promises_more_than_it_holds_is_refused(path):
    with zipfile.ZipFile(path, "w") as archive:
        header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (9999999999,)}\n"
        size = len(header).to_bytes(2, "little")
        archive.writestr("x.npy", b"\x93NUMPY\x01\x00" + size + header)
    with pytest.raises(FileFormatError):
        load_arrays(path, "sample")


def test_what_holds_objects_is_not_written(tmp_path):
    with pytest.raises(ValueError, match="Object arrays"):
        save_arrays(tmp_path / "a.npz", "s", {}, {"x": np.array([{}], object)})
    assert list(tmp_path.iterdir()) == []
