"""Data and settings that `equistein fit` refuses, before it writes anything."""

import numpy as np
import pytest
from command_line import COMMON, status


def labelled():
    """Forty points of two classes, five of them without their class."""
    rng = np.random.default_rng(0)
    classes = np.arange(40) % 2
    points = 0.3 * rng.normal(size=(40, 2)) + np.array([[-2, 0], [2, 0]])[classes]
    return points, np.where(np.arange(40) < 5, -1, classes)


POINTS, CLASSES = labelled()
TRIANGLES = np.random.default_rng(0).normal(size=(40, 6))


def changed(array, index, value):
    array = np.array(array)
    array[index] = value
    return array


def npz(**arrays):
    return lambda path: np.savez(path, **arrays)


def npy(array):
    return lambda path: np.save(path, array)


def text(content):
    return lambda path: path.write_text(content)


HF = """\
2
Properties=species:S:1:pos:R:3:forces:R:3 energy=-1.5
H 0 0 0 0 0 1
F 0 0 0.9 0 0 -1
"""
AT_300 = ["--group", "point-cloud", "--kelvin", "300"]
FEATURES = [*AT_300, "--network", "features"]
WATER = "3\nwater\nO 0 0 0\nH 0 1 0\nH 1 0 0\n"


def with_classes(classes):
    return ("x.npz", npz(x=POINTS, y=classes), [])


CLOUD = ["--group", "point-cloud"]
BAD = {  # what the tests of readers and of settings do not have
    "classes of the wrong length": (*with_classes(CLASSES[:-1]), "one class for each"),
    "a class that is a fraction": (
        *with_classes(changed(CLASSES.astype(float), 7, 0.5)), "whole numbers",
    ),
    "a class that is text": (*with_classes(CLASSES.astype(str)), "whole numbers"),
    "a class that is huge": (*with_classes(changed(CLASSES, 7, 10**6)), "from 0 on"),
    "classes beyond integers": (
        *with_classes(changed(CLASSES.astype(float), 7, 1e30)), "whole numbers",
    ),
    "no class known": (*with_classes(np.full(40, -1)), "hold none"),
    "NaN": ("x.npy", npy(changed(POINTS, (3, 1), np.nan)), [], "at index 3"),
    "a constant column": (
        "x.npy", npy(changed(POINTS, (slice(None), 1), 2.0)), [], "constant",
    ),
    "fewer points than a batch": ("x.npy", npy(POINTS[:8]), [], "smaller `batch_size`"),
    "one point": ("x.npy", npy(POINTS[:1]), [], "at least two points"),
    "an array by the name of an archive": ("x.npz", text("\x93NUMPY"), [], "damaged"),
    "an array by the name of molecules": (
        "x.xyz", lambda path: path.write_bytes(b"\x93NUMPY\xff\xfe"), CLOUD, "atoms",
    ),
    "another kind of file": ("x.txt", text("0,1\n2,3\n"), [], "must be an .npy file"),
    "words in a table": ("x.csv", text("a,b\n1,two\n3,four\n"), [], "'two'"),
    "a folder": ("x.npy", lambda path: path.mkdir(), [], "two images"),
    "molecules without their group": ("x.xyz", text(2 * WATER), [], "point-cloud"),
    "one molecule": ("x.xyz", text(WATER), CLOUD, "trains on 1 of 1"),
    "molecules of two formulas": (
        "x.xyz", text(WATER + WATER.replace("O", "S") + WATER), CLOUD,
        "H2O (2, the first at index 0), H2S (1, the first at index 1): choose",
    ),
    "species of other molecules": (
        "x.xyz", text(2 * WATER), [*CLOUD, "--species", "O H"], "--species",
    ),
    "a key that is not there": (
        "x.xyz", text(2 * WATER), [*CLOUD, "--energy-key", "e"], "--energy-key",
    ),
    "a unit of energy for points": (
        "x.npy", npy(POINTS), ["--energy-unit", "eV"], "--energy-unit",
    ),
    "a separator of molecules": (
        "x.xyz", text(2 * WATER), [*CLOUD, "--sep", ";"], "--sep",
    ),
    "atoms alone": ("x.xyz", text(2 * "1\n\nO 0 0 0\n"), CLOUD, "index 0 has 1"),
    "too many atoms": (
        "x.xyz",
        text(WATER + "201\n\n" + "".join(f"O {i} 0 0\n" for i in range(201))),
        CLOUD,
        "index 1 has 201",
    ),
    "a temperature of what has no energy": (
        "x.xyz", text(9 * WATER), [*AT_300, "--purpose", "generation"], "--kelvin",
    ),
    "a temperature of points": (
        "x.npy", npy(TRIANGLES), [*AT_300, "--dim", "2"], "--kelvin",
    ),
    "a temperature of arrays with other names": (
        "x.npz", lambda path: np.savez(path, _positions=TRIANGLES, R_train=TRIANGLES),
        [*AT_300, "--dim", "2"], "but has _positions, R_train",
    ),
    "energies that are all alike": (
        "x.xyz", text(9 * HF.replace(":forces:", ":other:")), FEATURES, "--kelvin",
    ),
    "energies alone for a graph network": (
        "x.xyz", text(9 * HF.replace(":forces:", ":other:")),
        [*AT_300, "--network", "graph"], "--kelvin",
    ),
    "energies by another name": (
        "x.xyz", text(9 * WATER.replace("water", "Epot=-1.5")), AT_300, "read: Epot",
    ),
    "forces that are all zero": (
        "x.xyz", text(9 * HF.replace("0 0 1", "0 0 0").replace("-1\n", "0\n")),
        AT_300, "--kelvin",
    ),
    "more held out than is left": (
        "x.npy", npy(POINTS), ["--held-out", "0.9"], "smaller `batch_size`",
    ),
    "a setting out of range": (
        "x.npy", npy(POINTS), ["--temperature", "0"], "temperature",
    ),
    "a cloud without its dimension": ("x.npy", npy(POINTS), CLOUD, "--dim"),
    "a dimension without a cloud": ("x.npy", npy(POINTS), ["--dim", "2"], "--dim"),
    "species for other particles": (
        "x.npy", npy(TRIANGLES), [*CLOUD, "--dim", "2", "--species", "C C"], "species",
    ),
    "an unknown group": ("x.npy", npy(POINTS), ["--group", "square"], "no group"),
    "images that are not square": (
        "x.npy", npy(np.random.default_rng(0).random((40, 6, 5))),
        ["--group", "image-rotations"], "shape",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("name", "write", "options", "said"), BAD.values(), ids=BAD)
def test_bad_input_is_refused_before_a_run_folder_is_made(
    name, write, options, said, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / name
    write(path)
    group = [] if "--group" in options else ["--group", "trivial"]
    arguments = [*group, *COMMON, *options]
    assert status("fit", name, *arguments, "--out", "out") == 2
    caught = capsys.readouterr()
    assert said in " ".join((caught.err + caught.out).split())
    assert "Traceback" not in caught.err
    assert [left.name for left in tmp_path.iterdir()] == [name]


def test_a_file_that_is_too_large_is_refused(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("EQUISTEIN_MAX_BYTES", "400")
    np.save(tmp_path / "x.npy", np.zeros((110, 2), np.int8))
    (tmp_path / "x.xyz").write_bytes(bytes(300))
    for name in ("x.npy", "x.xyz"):
        arguments = ["--group", "point-cloud", "--out", tmp_path / "out"]
        assert status("fit", tmp_path / name, *arguments) == 2
        assert "at most 3.73e-07 GiB" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--num-particles", "1000000000"], "`num_particles`"),
        (["--widths", "100000", "100000"], "`widths`"),
        (["--num-samples", "1000000000"], "1000000000 samples"),
        (["--num-epochs", "1000000000"], "num_epochs"),
        (["--num-epochs", "10000000000"], "split the work"),
    ],
)
def test_what_would_need_too_much_memory_is_refused(
    options, said, tmp_path, monkeypatch, capsys
):
    monkeypatch.setenv("EQUISTEIN_MAX_BYTES", "1000000000")
    np.save(tmp_path / "x.npy", POINTS)
    arguments = ["--group", "trivial", *options, "--out", tmp_path / "out"]
    assert status("fit", tmp_path / "x.npy", *arguments) == 2
    told = " ".join(capsys.readouterr().err.split())
    assert said in told
    if "10000000000" not in options:
        assert "set EQUISTEIN_MAX_BYTES to" in told
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "error", [MemoryError("3 GiB"), RuntimeError("RESOURCE_EXHAUSTED: 3 GiB")]
)
def test_memory_that_runs_out_is_told_without_a_traceback(
    error, tmp_path, monkeypatch, capsys
):
    def fail(*arguments):
        raise error

    monkeypatch.setattr("equistein.runs.RunFolder.create", fail)
    np.save(tmp_path / "x.npy", POINTS)
    assert status("fit", tmp_path / "x.npy", "--group", "trivial") == 1
    assert "Memory ran out: " in capsys.readouterr().err


@pytest.mark.parametrize("command", ["resume", "report", "sample"])
def test_a_folder_that_is_no_run_is_refused(command, tmp_path, capsys):
    (tmp_path / "thesis.txt").write_text("mine")
    more = ["--out", tmp_path / "new.npy"] if command == "sample" else []
    for folder in (tmp_path, tmp_path / "thesis.txt", tmp_path / "nowhere"):
        assert status(command, folder, *more) == 2
        assert "is not a run folder" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]
