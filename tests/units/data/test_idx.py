import gzip

import numpy as np
import pytest

from equistein.data import DataError, read_idx


@pytest.mark.parametrize("packed", [True, False])
def test_an_idx_file_is_read_back(packed, array, idx, tmp_path):
    path = tmp_path / "images"
    path.write_bytes(gzip.compress(idx) if packed else idx)
    assert np.array_equal(read_idx(path), array)
    assert np.array_equal(read_idx(str(path)), array)


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda b: b[:-1], "must hold 24 bytes.*it is truncated"),
        (lambda b: b + b"\0", "must hold 24 bytes.*holds more"),
        (lambda b: b[:9], "ends in its header"),
        (lambda b: b"", "should begin with"),
        (lambda b: b"\0\0\x0d" + b[3:], "no IDX file of unsigned bytes"),
        (lambda b: b"PK" + b[2:], "no IDX file of unsigned bytes"),
        (lambda b: b[:3] + b"\0", "no IDX file of unsigned bytes"),
        (lambda b: b[:4] + b"\xff" * 12 + b[16:], "at most 512 MiB"),
        (lambda b: b[:4] + b"\0" * 4 + b"\xff" * 8, "at most 512 MiB"),
        (lambda b: b[:3] + b"\x64" + b"\0\0\0\1" * 100, "no IDX file"),
    ],
)
def test_a_damaged_idx_file_is_refused(damage, words, idx, tmp_path):
    for name, wrap in (("plain", lambda b: b), ("packed", gzip.compress)):
        path = tmp_path / name
        path.write_bytes(wrap(damage(idx)))
        with pytest.raises(DataError, match=words):
            read_idx(path)


def test_a_truncated_archive_and_no_file_are_refused(idx, tmp_path):
    path = tmp_path / "images.gz"
    path.write_bytes(gzip.compress(idx)[:-12])
    with pytest.raises(DataError, match="cannot be read.*Copy it again"):
        read_idx(path)
    with pytest.raises(DataError, match="cannot be read"):
        read_idx(tmp_path / "nothing")
