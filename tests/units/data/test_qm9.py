import io
import re
import tarfile

import numpy as np
import pytest

from equistein.data import _qm9, DataError, qm9_isomers
from equistein.data._cache import save_cached
from equistein.molecules import atomic_numbers_of

METHANOL = ("C", "O", "H", "H", "H", "H")


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch, request):
    folder = tmp_path / "cache"
    folder.mkdir()
    monkeypatch.setenv("EQUISTEIN_CACHE", str(folder))
    if "qm9_folder" not in request.fixturenames:
        monkeypatch.delenv("EQUISTEIN_DATA", raising=False)
    return folder


@pytest.fixture
def local(tmp_path, monkeypatch):
    folder = tmp_path / "data"
    (folder / "qm9").mkdir(parents=True)
    monkeypatch.setenv("EQUISTEIN_DATA", str(folder))
    return folder / "qm9" / "qm9_CH4O.npz"


@pytest.fixture
def arrays():
    positions = np.random.default_rng(0).normal(size=(3, 6, 3))
    charges = np.array(atomic_numbers_of(METHANOL), np.int32)
    return {
        "positions": positions,
        "charges": np.tile(charges, (3, 1)),
        "split": np.array(["train", "test", "train"]),
    }


def same(found, arrays):
    assert np.array_equal(found.positions, arrays["positions"])
    assert found.atomic_numbers.tolist() == [6, 8, 1, 1, 1, 1]
    assert np.array_equal(found.split, arrays["split"])
    return True


@pytest.mark.parametrize(
    "change",
    [
        lambda arrays: {},
        lambda arrays: {"charges": arrays["charges"][0]},
        lambda arrays: {"smiles": np.array(["CO"] * 3), "qm9_index": np.arange(3)},
    ],
)
def test_molecules_are_read_from_the_local_folder(change, local, arrays):
    np.savez(local, **arrays | change(arrays))
    found = qm9_isomers("CH4O")
    assert same(found, arrays)
    assert np.array_equal(
        found.positions[found.split == "train"], arrays["positions"][[0, 2]]
    )


def test_the_cache_comes_second(local, cache, arrays):
    save_cached(cache / "qm9-CH4O.npz", arrays)
    assert same(qm9_isomers("CH4O"), arrays)
    np.savez(local, **arrays | {"positions": arrays["positions"] + 1})
    assert np.array_equal(qm9_isomers("CH4O").positions, arrays["positions"] + 1)


def test_without_a_folder_and_a_download_there_is_none(monkeypatch, tmp_path):
    monkeypatch.setattr(_qm9, "_fetch", lambda: pytest.fail("fetched"))
    assert qm9_isomers("CH4O") is None
    monkeypatch.setenv("EQUISTEIN_DATA", str(tmp_path / "nowhere"))
    assert qm9_isomers("CH4O") is None


@pytest.mark.parametrize("text", ["", "ch4", "C5-H8", "../secret", "C5H8O ", "*"])
def test_what_is_no_formula_is_refused(text):
    with pytest.raises(DataError, match="A formula is like C5H8O, but got"):
        qm9_isomers(text)


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"",
        lambda content: content[:200],
        lambda content: content[:300] + b"\xff\x00\xff" + content[303:],
    ],
    ids=["empty", "cut", "changed"],
)
def test_a_damaged_file_is_named(damage, local, arrays):
    np.savez(local, **arrays)
    local.write_bytes(damage(local.read_bytes()))
    with pytest.raises(DataError, match="qm9_CH4O.npz is damaged.*copy it again"):
        qm9_isomers("CH4O")


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("positions", lambda x: x[:2]),
        ("positions", lambda x: x[:, :5]),
        ("positions", lambda x: x[..., :2]),
        ("positions", lambda x: x.astype(int)),
        ("positions", lambda x: np.where(x == x[1, 2, 0], np.nan, x)),
        ("charges", lambda x: x[0, :5]),
        ("charges", lambda x: x.astype(float)),
        ("charges", lambda x: np.stack([x[0], x[1], x[2, ::-1]])),
        ("charges", lambda x: 0 * x),
        ("split", lambda x: x[:2]),
        ("split", lambda x: x[:, None]),
    ],
)
def test_arrays_of_a_wrong_shape_or_kind_are_refused(name, change, local, arrays):
    arrays[name] = change(arrays[name])
    np.savez(local, **arrays)
    with pytest.raises(DataError, match="`positions`"):
        qm9_isomers("CH4O")


def frame(index, atoms):
    """Return a molecule as in QM9's archive."""
    properties = "\t".join([f"gdb {index}", *["157.7118"] * 15])
    rows = [
        "\t".join([symbol, *(f"{x: .10f}" for x in point), "-0.535689"])
        for symbol, point in atoms
    ]
    rest = ["1341.307\t1341.3284\t1341.365", "C\tC\t", "InChI=1S/CH4\tInChI=1S/CH4"]
    return "\n".join([str(len(atoms)), properties, *rows, *rest, ""])


def written_as_in_qm9(text):
    """Write one number as QM9 writes small ones."""
    assert " 0.0000015000" in text
    return text.replace(" 0.0000015000", "1.5*^-6")


EXCLUDED = """



List of molecules among the 133885 GDB9 molecules for which the geometries
different SMILES and InChI strings when parsed through the program Openbabel.

=============================================================================
#   Index         GDB17 SMILES        SMILES for B3LYP XYZ              D_IJ
=============================================================================
       4                 CO                         CO              6.036217
      58          NC(=N)C#N                  NC(=N)C#N              5.631463
=============================================================================
"""


@pytest.fixture
def archive(tmp_path, monkeypatch):
    """Five molecules: methanol three times, of which one is excluded, and others."""
    points = np.round(np.random.default_rng(1).normal(size=(5, 6, 3)), 10)
    points[0, 1, 2] = 1.5e-6
    orders = {1: (0, 1, 2, 3, 4, 5), 3: (4, 1, 3, 0, 2, 5), 4: (0, 1, 2, 3, 4, 5)}
    files = {}
    for row, (index, order) in enumerate(orders.items()):
        atoms = [(METHANOL[i], points[row, i]) for i in order]
        files[index] = frame(index, atoms)
    files[1] = written_as_in_qm9(files[1])
    files[2] = frame(2, list(zip("CHHHH", points[3, :5], strict=True)))
    files[5] = frame(5, list(zip("NOHHHH", points[4], strict=True)))
    path = tmp_path / "dsgdb9nsd.xyz.tar.bz2"
    with tarfile.open(path, "w:bz2") as packed:
        for index, text in sorted(files.items()):
            member = tarfile.TarInfo(f"dsgdb9nsd_{index:06d}.xyz")
            member.size = len(text)
            packed.addfile(member, io.BytesIO(text.encode()))
    excluded = tmp_path / "uncharacterized.txt"
    excluded.write_text(EXCLUDED)
    fetched = []
    monkeypatch.setattr(_qm9, "_fetch", lambda: fetched.append(1) or (path, excluded))
    return points, fetched


def test_the_molecules_of_a_formula_are_found_in_the_archive(archive):
    points, fetched = archive
    found = qm9_isomers("CH4O", download=True)
    assert fetched == [1]
    assert found.atomic_numbers.tolist() == [6, 8, 1, 1, 1, 1]
    assert found.positions.shape == (2, 6, 3)  # without the one that is excluded
    assert np.array_equal(found.positions[0], points[0])
    # heavy atoms come first, and the hydrogens stay in their order
    assert np.array_equal(found.positions[1], points[1, [0, 1, 4, 3, 2, 5]])


def test_the_order_of_a_formula_does_not_matter(archive):
    assert len(qm9_isomers("OCH4", download=True).positions) == 2
    assert len(qm9_isomers("CH3OH", download=True).positions) == 2
    assert qm9_isomers("CH4", download=True).atomic_numbers.tolist() == [6, 1, 1, 1, 1]
    assert qm9_isomers("H4NO", download=True).atomic_numbers[0] == 7


def test_what_was_found_in_the_archive_is_kept(archive, cache):
    assert qm9_isomers("CH4O") is None
    assert archive[1] == []
    first = qm9_isomers("CH4O", download=True)
    again = qm9_isomers("CH4O")
    assert archive[1] == [1]
    assert same(again, {"positions": first.positions, "split": first.split})
    assert [file.name for file in cache.iterdir()] == ["qm9-CH4O.npz"]


@pytest.mark.parametrize("formula", ["C2H6", "CH4S", "CH"])
def test_a_formula_that_is_not_in_the_archive_is_named(formula, archive):
    with pytest.raises(DataError, match=f"no molecule of the formula {formula}"):
        qm9_isomers(formula, download=True)


def test_a_failed_download_says_what_to_do(monkeypatch):
    def fail(url, checksum, *args, **settings):
        assert url.startswith("https://")
        assert re.fullmatch("sha256:[0-9a-f]{64}", checksum)
        raise OSError("no route to host")

    monkeypatch.setattr("pooch.retrieve", fail)
    with pytest.raises(
        DataError, match="could not be fetched: no route to host.*qm9_<formula>.npz"
    ):
        qm9_isomers("CH4O", download=True)


def test_the_local_molecules_are_those_of_qm9(qm9_folder):
    found = qm9_isomers("C5H8O")
    assert found.positions.shape == (48, 14, 3)
    assert found.atomic_numbers.tolist() == 5 * [6] + [8] + 8 * [1]
    names, counts = np.unique(found.split, return_counts=True)
    assert dict(zip(names.tolist(), counts.tolist(), strict=True)) == {
        "train": 35, "valid": 6, "test": 7,
    }  # fmt: skip
    assert found.positions[found.split == "train"].shape == (35, 14, 3)


def test_the_split_is_that_of_cormorant(qm9_folder):
    with np.load(qm9_folder / "qm9_split_cormorant.npz") as file:
        expected = {name: set(file[name].tolist()) for name in file.files}
    kept = set().union(*expected.values())
    parts = _qm9._splits(set(range(1, 133_886)) - kept)
    assert len(parts) == 130_831
    for name in ("train", "valid", "test"):
        assert {index for index, part in parts.items() if part == name} == (
            expected[name]
        )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("positions", np.float64(1.0)),
        ("positions", np.zeros((0, 6, 3))),
        ("split", np.array([0, 1, 2])),
        ("split", np.array(["a", "b", "c"])),
        ("charges", np.array([1, 6, 8, 1, 1, 1])),
        ("charges", np.array([6, 7, 1, 1, 1, 1])),
    ],
)
def test_a_file_of_something_else_is_refused(name, value, local, arrays):
    np.savez(local, **arrays | {name: value})
    with pytest.raises(DataError, match="must hold"):
        qm9_isomers("CH4O")
    del arrays[name]
    np.savez(local, **arrays)
    with pytest.raises(DataError, match=name):
        qm9_isomers("CH4O")
