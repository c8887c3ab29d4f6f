import io

import numpy as np
import pytest

from equistein.data import (
    as_particles,
    DataError,
    map_points,
    read_labels,
    read_points,
    unused_arrays,
)


@pytest.fixture
def points():
    return np.random.default_rng(0).normal(size=(6, 4))


def test_an_npy_file_is_read_in_single_precision(tmp_path, points):
    np.save(tmp_path / "x.npy", points)
    read = read_points(tmp_path / "x.npy")
    assert read.dtype == np.float32
    assert np.allclose(read, points)


def test_the_array_x_of_an_npz_file_is_read(tmp_path, points):
    np.savez(tmp_path / "x.npz", x=points.reshape(6, 2, 2), y=np.zeros(3))
    assert np.allclose(read_points(tmp_path / "x.npz"), points.reshape(6, 2, 2))
    np.savez_compressed(tmp_path / "z.npz", x=points)
    assert np.allclose(read_points(tmp_path / "z.npz"), points)


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.zeros(4), "at least two points.*shape"),
        (np.zeros((1, 4)), "at least two points"),
        (np.zeros((4, 0)), "at least two points"),
        (np.float64(3.0), "at least two points"),
        (np.array([[1.0, np.nan], [0.0, 0.0]]), "1 of 2 points .* index 0"),
        (np.array([[1.0, 2.0], [np.inf, 0.0]]), "1 of 2 points .* index 1"),
        (np.zeros((4, 2), complex), "real numbers"),
        (np.array([["a", "b"], ["c", "d"]]), "real numbers"),
        (np.zeros((4, 2), bool), "real numbers"),
        (np.array([[1e300, 0.0], [0.0, 0.0]]), "finite|large|float32"),
    ],
)
def test_an_array_that_holds_no_points_is_refused(array, words, tmp_path):
    np.save(tmp_path / "x.npy", array)
    with pytest.raises(DataError, match=words):
        read_points(tmp_path / "x.npy")


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(DataError, match="no file .*x.npy"):
        read_points(tmp_path / "x.npy")
    with pytest.raises(DataError, match="no file"):
        read_points(tmp_path)


@pytest.mark.parametrize("name", ["x.csv", "x.pkl", "x", "x.npy.txt"])
def test_another_kind_of_file_is_refused(name, tmp_path, points):
    path = tmp_path / name
    with path.open("wb") as file:
        np.save(file, points)
    with pytest.raises(DataError, match="that ends in .npy or .npz"):
        read_points(path)


def test_a_pickled_array_is_not_loaded(tmp_path):
    np.save(tmp_path / "x.npy", np.array([[1], ["two"]], object), allow_pickle=True)
    with pytest.raises(DataError, match="damaged.* or no NumPy file of numbers"):
        read_points(tmp_path / "x.npy")
    np.savez(tmp_path / "x.npz", x=np.array([{}, {}], object))
    with pytest.raises(DataError, match="damaged.* or no NumPy file of numbers"):
        read_points(tmp_path / "x.npz")


@pytest.mark.parametrize("keep", [0, 3, 50, 200])
@pytest.mark.parametrize("name", ["x.npy", "x.npz"])
def test_a_truncated_file_is_refused(name, keep, tmp_path, points):
    path = tmp_path / name
    (np.save if name == "x.npy" else np.savez)(path, points)
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(DataError, match="damaged"):
        read_points(path)


@pytest.mark.parametrize("save", [np.save, np.savez, np.savez_compressed])
@pytest.mark.parametrize("flip", [0x01, 0xFF])
def test_a_file_with_a_damaged_byte_is_read_or_refused(save, flip, tmp_path, points):
    whole = tmp_path / ("x.npy" if save is np.save else "x.npz")
    save(whole, points) if save is np.save else save(whole, x=points)
    content = whole.read_bytes()
    for offset in range(0, len(content), 2):
        damaged = bytearray(content)
        damaged[offset] ^= flip
        whole.write_bytes(bytes(damaged))
        try:
            read = read_points(whole)
        except DataError:
            continue
        assert read.dtype == np.float32
        assert np.all(np.isfinite(read))


def test_an_archive_without_x_names_what_it_has(tmp_path, points):
    np.savez(tmp_path / "x.npz", positions=points, y=points)
    with pytest.raises(DataError, match="`x`"):
        read_points(tmp_path / "x.npz")
    np.savez(tmp_path / "y.npz")
    with pytest.raises(DataError, match="`x`"):
        read_points(tmp_path / "y.npz")


def test_a_header_that_promises_too_much_is_refused(tmp_path):
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<f8", "fortran_order": False, "shape": (10**12, 10**3)}
    )
    (tmp_path / "x.npy").write_bytes(header.getvalue() + bytes(64))
    with pytest.raises(DataError, match="at most 0.5 GiB"):
        read_points(tmp_path / "x.npy")


def test_a_huge_file_is_refused_by_its_size(tmp_path, points, monkeypatch):
    monkeypatch.setenv("EQUISTEIN_MAX_BYTES", "100")
    np.save(tmp_path / "x.npy", points)
    with pytest.raises(DataError, match="at most 9.31e-08 GiB"):
        read_points(tmp_path / "x.npy")


def test_bytes_count_as_what_they_become(tmp_path, monkeypatch):
    """A small archive of bytes is four times as large in single precision."""
    monkeypatch.setenv("EQUISTEIN_MAX_BYTES", "100000")
    np.savez_compressed(tmp_path / "x.npz", x=np.ones((20_000, 2), np.int8))
    with pytest.raises(DataError, match="about 0.000149 GiB of memory"):
        read_points(tmp_path / "x.npz")
    monkeypatch.setenv("EQUISTEIN_MAX_BYTES", "160000")
    assert read_points(tmp_path / "x.npz").shape == (20_000, 2)


def test_a_bound_that_is_no_number_is_told(tmp_path, points, monkeypatch):
    monkeypatch.setenv("EQUISTEIN_MAX_BYTES", "2 GB")
    np.save(tmp_path / "x.npy", points)
    with pytest.raises(DataError, match="must be a number of bytes, but is '2 GB'"):
        read_points(tmp_path / "x.npy")


def test_rows_become_particles(points):
    clouds = as_particles(points, 2)
    assert clouds.shape == (6, 2, 2)
    assert np.array_equal(clouds[0], [[points[0, 0], points[0, 1]], points[0, 2:]])
    assert as_particles(clouds, 2) is clouds


@pytest.mark.parametrize(
    ("shape", "dim", "words"),
    [
        ((6, 4), 3, "do not divide"),
        ((6, 2, 2), 3, "dimension 3"),
        ((6, 2, 3), 2, "dimension 2"),
        ((6, 4), 0, "dimension 0"),
    ],  # fmt: skip
)
def test_rows_that_are_no_particles_are_refused(shape, dim, words):
    with pytest.raises(DataError, match=words):
        as_particles(np.zeros(shape), dim)


def test_points_stay_on_disk(tmp_path):
    points = np.arange(12.0).reshape(4, 3)
    np.save(tmp_path / "x.npy", points)
    np.savez(tmp_path / "x.npz", a=np.ones(5), x=points, y=np.arange(4))
    np.save(tmp_path / "f.npy", np.asfortranarray(points))
    for name in ("x.npy", "x.npz", "f.npy"):
        found = map_points(tmp_path / name)
        assert isinstance(found, np.memmap)
        assert np.array_equal(found, points)


def test_what_cannot_stay_on_disk_is_refused(tmp_path):
    np.savez_compressed(tmp_path / "c.npz", x=np.ones((4, 3)))
    np.savez(tmp_path / "y.npz", y=np.ones((4, 3)))
    np.save(tmp_path / "i.npy", np.ones((4, 3), int))
    np.save(tmp_path / "o.npy", np.array([[{}], [{}]]))
    (tmp_path / "d.npy").write_bytes(b"\x93NUMPY damaged")
    for name, message in {
        "c.npz": "save it with np.savez", "y.npz": "x.npy", "i.npy": "floating point",
        "o.npy": "type object", "d.npy": "cannot be read", "none.npy": "No such file",
    }.items():  # fmt: skip
        with pytest.raises(DataError, match=message):
            map_points(tmp_path / name)


@pytest.mark.parametrize("labels", [[0, 1], [0, 1, 0, 1], [[0, 1, 0]]])
def test_labels_must_be_one_a_point(labels, tmp_path):
    np.savez(tmp_path / "x.npz", x=np.ones((3, 2)), y=np.array(labels))
    with pytest.raises(DataError, match="one class for each of its 3 points"):
        read_labels(tmp_path / "x.npz", 3)
    np.savez(tmp_path / "named.npz", x=np.zeros((2, 3)), labels=np.array([1, 0]))
    assert read_labels(tmp_path / "named.npz", 2).tolist() == [1, 0]


def test_labels_are_whole_numbers(tmp_path):
    for labels, good in (([0.0, 1.0], True), ([0.0, 0.5], False)):
        np.savez(tmp_path / "y.npz", x=np.zeros((2, 2)), y=np.array(labels))
        if good:
            assert read_labels(tmp_path / "y.npz", 2).tolist() == [0, 1]
        else:
            with pytest.raises(DataError, match="whole numbers"):
                read_labels(tmp_path / "y.npz", 2)


def test_arrays_that_are_not_used_are_noted(tmp_path, points):
    path = tmp_path / "x.npz"
    np.savez(path, x=points, y=np.zeros(6), weights=np.ones(6), E=np.ones(6))
    (note,) = unused_arrays(path, ())
    assert "weights, E" in note
    notes = unused_arrays(path, ("Read `E`, in eV.",))
    assert notes[0] == "Read `E`, in eV."
    assert "weights." in notes[1]
    np.savez(path, R=points, z=np.ones(6))
    np.save(tmp_path / "x.npy", points)
    assert unused_arrays(path, ()) == unused_arrays(tmp_path / "x.npy", ()) == ()
