"""What samples may be written to, without a fit."""

import contextlib
import types

import numpy as np
import pytest

from equistein.cli._fit import print_answer
from equistein.cli._sample import check_out, write_samples
from equistein.data import read_image_folder
from equistein.molecules import read_molecules
from equistein.runs import RunFolder, UserError

pytestmark = pytest.mark.usefixtures("unchecked")


def fitted(shape, **about):
    reference = types.SimpleNamespace(center=np.zeros(shape))
    return types.SimpleNamespace(reference=reference, about=about)


@pytest.mark.parametrize(
    ("name", "shape", "species", "said"),
    [
        ("new", (6, 6, 1), None, None),
        ("new", (6, 6, 3), None, None),
        ("new.png", (6, 6, 3), None, "no ending"),
        ("new", (6, 2), None, "must end in one of"),
        ("new.xyz.gz", (2, 3), ("H", "F"), None),
        ("new.pdb", (2, 3), ("H", "F"), None),
        ("new.pdb", (2, 3), None, "need data with elements"),
        ("new.gz", (2, 3), ("H", "F"), "must end in one of"),
        ("new.csv", (2,), None, "names of columns"),
    ],
)
def test_kinds_are_those_that_the_data_could_be_read_from(
    name, shape, species, said, tmp_path
):
    refused = pytest.raises(UserError, match=said) if said else contextlib.nullcontext()
    with refused:
        check_out(tmp_path / name, species, fitted(shape))


def test_images_become_a_folder(tmp_path):
    images = np.linspace(0, 1, 3 * 36).reshape(3, 6, 6, 1)
    about = {"classes": ["cats", "dogs"]}
    write_samples(tmp_path / "new", images, None, None, about)
    assert np.allclose(read_image_folder(tmp_path / "new")[0], images, atol=1 / 255)
    write_samples(tmp_path / "bytes", 255 * images, None, None, about)
    assert np.allclose(read_image_folder(tmp_path / "bytes")[0], images, atol=0.01)


@pytest.mark.parametrize(
    "name", ["new.xyz.gz", "new.pdb", "new.traj", "new.db", "new.extxyz", "new.xyz"]
)
def test_molecules_become_files_that_are_read_again(name, tmp_path):
    pytest.importorskip("ase")
    points = np.random.default_rng(0).normal(size=(3, 2, 3))
    write_samples(tmp_path / name, points, None, ("H", "F"), {})
    frames = read_molecules(tmp_path / name)
    assert [frame.symbols for frame in frames] == [("H", "F")] * 3
    again = np.stack([frame.positions for frame in frames])
    assert np.allclose(again, points, atol=2e-3)


def test_molecules_become_trajectories(tmp_path):
    mdtraj = pytest.importorskip("mdtraj", reason="needs mdtraj")
    points = np.random.default_rng(0).normal(size=(3, 2, 3))
    path = tmp_path / "new.dcd"
    check_out(path, ("H", "F"), fitted((2, 3)))
    write_samples(path, points, None, ("H", "F"), {})
    with mdtraj.formats.DCDTrajectoryFile(str(path)) as file:
        assert np.allclose(file.read()[0], points, atol=1e-5)
    topology = tmp_path / "top.pdb"
    write_samples(topology, points[:1], None, ("H", "F"), {})
    named = tmp_path / "named.pdb"
    write_samples(named, points, None, ("H", "F"), {"topology": topology})
    assert np.allclose(10 * mdtraj.load(str(named)).xyz, points, atol=1e-2)


@pytest.mark.parametrize(
    ("data", "new"),
    [("a.xyz", "new.xyz"), ("a.xyz.gz", "new.xyz.gz"), ("a.PDB", "new.pdb"),
     ("images.d/", "new")],
)  # fmt: skip
def test_a_fit_tells_how_to_draw_files_of_the_kind_it_was_given(
    data, new, tmp_path, capsys
):
    if data.endswith("/"):
        (tmp_path / data).mkdir()
    folder = RunFolder.create(tmp_path / "run")
    folder.write_json("metrics.json", {})
    print_answer(folder, tmp_path / data)
    assert capsys.readouterr().out.endswith(f" --out {new}\n")
