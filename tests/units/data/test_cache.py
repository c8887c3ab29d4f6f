import numpy as np
import pytest

from equistein.data import cache_folder, cached_array
from equistein.data._cache import save_cached


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("EQUISTEIN_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("EQUISTEIN_DATA", raising=False)
    return tmp_path / "cache"


def counted(calls, value=1.0):
    def make():
        calls.append(1)
        return np.full((2, 3), value)

    return make


def test_an_array_is_made_once(folder):
    calls = []
    first = cached_array("name", {"a": 1}, (2, 3), counted(calls))
    second = cached_array("name", {"a": 1}, (2, 3), counted(calls))
    assert len(calls) == 1
    assert np.array_equal(first, second)
    assert first.dtype == second.dtype == np.float32
    assert [file.suffix for file in folder.iterdir()] == [".npz"]


_HEADER = b"\x93NUMPY\x01\x00\x46\x00{'descr': '<f4', 'fortran_order': False, 'shape': "


@pytest.mark.parametrize(
    "damage",
    [b"", b"\x93NUMPY", b"nonsense", _HEADER + b"(99999999999, 2)}", _HEADER, None],
)
def test_a_damaged_file_is_made_anew(damage, folder):
    calls = []
    cached_array("name", {}, (2, 3), counted(calls))
    (file,) = folder.iterdir()
    if damage is None:
        x = np.full((2, 3), 2, np.float32)  # without a checksum
        np.savez(file, x=x)
    else:
        file.write_bytes(damage)
    again = cached_array("name", {}, (2, 3), counted(calls))
    assert len(calls) == 2
    assert np.all(again == 1)


def test_a_cache_of_another_shape_is_made_anew(folder):
    cached_array("name", {}, (2, 3), counted([]))
    (file,) = folder.iterdir()
    save_cached(file, {"x": np.ones((4, 4), np.float32)})
    calls = []
    cached_array("name", {}, (2, 3), counted(calls))
    assert calls


def test_where_nothing_can_be_written_nothing_is_kept(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("EQUISTEIN_CACHE", str(tmp_path / "file" / "cache"))
    assert cached_array("name", {}, (2, 3), counted([])).shape == (2, 3)


def test_the_cache_is_the_users_by_default(monkeypatch, tmp_path):
    monkeypatch.delenv("EQUISTEIN_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "equistein"
