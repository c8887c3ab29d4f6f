import json

import numpy as np
import pytest
from command_line import lines_of, status, TINY_GRAPH

import equistein as es
from equistein.molecules import read_xyz, write_xyz


@pytest.mark.slow
def test_molecules_are_fitted_from_an_xyz_file(molecular_run):
    described = json.loads((molecular_run / "config.json").read_text())
    assert described["shape"] == [2, 3]
    with np.load(molecular_run / "samples.npz", allow_pickle=False) as stored:
        assert stored["model"].shape == (6, 2, 3)
        assert np.max(np.abs(stored["model"].mean(axis=1))) < 1e-5
    metrics = json.loads((molecular_run / "metrics.json").read_text())
    assert 0 <= metrics["entries"]["model"]["validity"] <= 1
    assert metrics["entries"]["model"]["train_denoising_loss"] > 0
    assert "held_out_log_likelihood" not in metrics["entries"]["model"]
    report = (molecular_run / "report.html").read_text()
    assert "contrastive divergence" not in report
    assert "Plotly.newPlot" in report
    assert [line["step"] for line in lines_of(molecular_run)] == [1, 2]


@pytest.mark.slow
def test_sampled_molecules_are_an_xyz_file_again(molecular_run, tmp_path):
    new = tmp_path / "new.xyz"
    assert status("sample", molecular_run, "--num-samples", 5, "--out", new) == 0
    frames = read_xyz(new)
    assert [frame.symbols for frame in frames] == [("F", "H")] * 5
    positions = np.stack([frame.positions for frame in frames])
    assert np.max(np.abs(positions.mean(axis=1))) < 1e-5
    plain = tmp_path / "new.npy"
    assert status("sample", molecular_run, "--num-samples", 5, "--out", plain) == 0
    assert np.allclose(np.load(plain), positions, atol=1e-6)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new.npy", "new.xyz"]


def test_a_model_that_does_not_come_with_the_package_is_refused(tmp_path, capsys):
    new = tmp_path / "new.xyz"
    assert status("sample", "pretrained:benzene", "--out", new) == 2
    assert "no pretrained model 'benzene', only c5h8o" in capsys.readouterr().err


@pytest.mark.slow
def test_molecules_have_no_classes_to_draw_from(molecular_run, tmp_path, capsys):
    new = tmp_path / "new.xyz"
    assert status("sample", molecular_run, "--label", 0, "--out", new) == 2
    assert "has no classes" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_molecules_of_several_formulas_share_a_fit(tmp_path, far_atoms, capsys):
    far = far_atoms
    write_xyz(tmp_path / "hf.xyz", ("H", "F"), far[:20])
    third = far[20:, :1] + np.array([[[0.0, 0.0, 1.5]]])
    threes = np.concatenate([far[20:], third], axis=1)
    write_xyz(tmp_path / "hfo.xyz", ("H", "F", "O"), threes)
    text = "".join((tmp_path / name).read_text() for name in ("hfo.xyz", "hf.xyz"))
    (tmp_path / "both.xyz").write_text(text)
    run, new = tmp_path / "run", tmp_path / "new.xyz"
    arguments = ["fit", tmp_path / "both.xyz", "--group", "point-cloud", *TINY_GRAPH]
    assert status(*arguments, "--out", run) == 0
    assert "Formulas: FH, FHO." in capsys.readouterr().out
    with np.load(run / "samples.npz", allow_pickle=False) as stored:
        assert stored["model"].shape == (6, 2, 3)
    draw = ["sample", run, "--num-samples", 3, "--out", new]
    assert status(*draw, "--formula", "CH4") == 2
    assert "CH4 has C, but this fit knows" in capsys.readouterr().err
    assert status(*draw[:-1], tmp_path / "F2.xyz", "--formula", "F2") == 0
    told = capsys.readouterr().out
    assert "Training never saw F2, but FH, FHO" in told
    assert "FH, seen (3): validity" in told
    assert status(*draw, "--formula", "FHO") == 0
    assert [frame.symbols for frame in read_xyz(new)] == [("F", "H", "O")] * 3


@pytest.mark.slow
def test_atoms_are_held(molecular_run, tmp_path, capsys):
    new, one = tmp_path / "new.xyz", tmp_path / "one.xyz"
    write_xyz(one, ("H", "F"), np.array([[[1.0, 2.0, 3.0], [1.9, 2.0, 3.0]]]))
    draw = ["sample", molecular_run, "--num-samples", 3, "--out", new]
    held = [*draw, "--hold", one]
    assert status(*held, "--hold-atoms", "1") == 0
    for frame in read_xyz(new):
        assert frame.symbols == ("F", "H")
        assert np.allclose(frame.positions[0], [1.9, 2.0, 3.0])
    new.unlink()
    capsys.readouterr()
    mistakes = {
        ("0,2",): "different numbers from 0 to 1, such as 0,1,2, but got '0,2'",
        ("0,0",): "different numbers",
        ("a",): "different numbers",
        (): "--hold has all 2 atoms",
    }
    for atoms, message in mistakes.items():
        assert status(*held, *(["--hold-atoms", *atoms] if atoms else [])) == 2
        assert message in capsys.readouterr().err
    assert status(*draw, "--hold-atoms", "0") == 2
    assert "needs --hold" in capsys.readouterr().err
    write_xyz(one, ("H", "H"), np.array([[[1.0, 2.0, 3.0], [1.9, 2.0, 3.0]]] * 2))
    assert status(*held) == 2
    assert "must hold one molecule, but holds 2" in capsys.readouterr().err
    write_xyz(one, ("H", "H"), np.array([[[1.0, 2.0, 3.0], [1.9, 2.0, 3.0]]]))
    assert status(*held) == 2
    assert "--hold has more H than FH has." in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["new.traj", "new.db", "new.extxyz", "new.xyz.gz", "new.pdb"]
)
def test_molecules_go_out_and_in_by_ase(name, molecular_run, tmp_path):
    read = pytest.importorskip("ase.io").read
    out = tmp_path / name
    assert status("sample", molecular_run, "--num-samples", 20, "--out", out) == 0
    frames = read(out, index=":")
    assert [each.get_chemical_formula() for each in frames] == ["HF"] * 20
    problem = es.models.Problem(group="point-cloud")
    dataset = es.models.read_dataset(out, problem, batch_size=4)
    assert set(dataset.species) == {"F", "H"}
    assert dataset.points.shape == (20, 2, 3)
